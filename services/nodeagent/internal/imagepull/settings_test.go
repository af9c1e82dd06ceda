package imagepull

import (
	"math"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"keelson.dev/kit/daemon"
)

// One image is pulled at a time unless the settings say otherwise; a number of at least 2 is enough. (Defaults and
// bounds of serializeImagePulls and maxParallelImagePulls, KubeletConfiguration v1beta1.)
func TestHowManyAtOnce(t *testing.T) {
	const all = math.MaxInt64
	for _, row := range []struct {
		args  string
		limit int64
		wrong string
	}{
		{"", 1, ""},
		{"--serialize-image-pulls", 1, ""},
		{"--serialize-image-pulls=true --max-parallel-image-pulls=1", 1, ""},
		{"--serialize-image-pulls=true --max-parallel-image-pulls=2", 0,
			"--max-parallel-image-pulls: 2 must be 1 unless --serialize-image-pulls is false"},
		{"--serialize-image-pulls=false", all, ""},
		{"--serialize-image-pulls=false --max-parallel-image-pulls=1", 1, ""},
		{"--serialize-image-pulls=false --max-parallel-image-pulls=7", 7, ""},
		{"--max-parallel-image-pulls=1", 1, ""},
		{"--max-parallel-image-pulls=2", 2, ""},
		{"--max-parallel-image-pulls=2147483647", 2147483647, ""},
		{"--max-parallel-image-pulls=2147483648", 0,
			`--max-parallel-image-pulls: "2147483648": must be a whole number`},
		{"--max-parallel-image-pulls=0", 0, "--max-parallel-image-pulls: 0 must be at least 1"},
		{"--serialize-image-pulls=false --max-parallel-image-pulls=-1", 0,
			"--max-parallel-image-pulls: -1 must be at least 1"},
		{"--serialize-image-pulls=perhaps", 0, `--serialize-image-pulls: "perhaps": must be true or false`},
	} {
		var s Settings
		fs := pflag.NewFlagSet("nodeagent", pflag.ContinueOnError)
		s.AddFlags(fs)
		err := fs.Parse(strings.Fields(row.args))
		if err == nil {
			err = s.Validate()
		}
		switch {
		case err != nil && daemon.FlagError(err).Error() != row.wrong, err == nil && row.wrong != "":
			t.Errorf("%s: %v, want %q", row.args, err, row.wrong)
		case err == nil && s.limit() != row.limit:
			t.Errorf("%s: %d at once, want %d", row.args, s.limit(), row.limit)
		}
	}
}
