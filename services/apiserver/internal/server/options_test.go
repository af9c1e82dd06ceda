package server

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestMemorySoftLimit(t *testing.T) {
	for value, want := range map[string]string{
		"0": "", "64Mi": "", "2Gi": "",
		"67108863": "--memory-soft-limit: 67108863 is neither 0 nor at least 64Mi",
		"-1":       "--memory-soft-limit: -1 is neither 0 nor at least 64Mi",
		"much":     "quantities must match the regular expression",
	} {
		options := NewOptions()
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		options.AddFlags(flags)
		err := flags.Parse([]string{"--memory-soft-limit=" + value})
		if err == nil {
			err = options.Validate()
		}
		if (err == nil) != (want == "") || (err != nil && !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", value, err, want)
		}
	}
}
