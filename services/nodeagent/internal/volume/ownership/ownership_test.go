package ownership

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"keelson.dev/services/nodeagent/internal/plainfile/plainfiletest"
)

// A Pod that nests folders without end exhausts nothing: beyond the bound an error gives the reason.
func TestDepth(t *testing.T) {
	for levels, refused := range map[int]bool{999: false, 1000: true} {
		dir := filepath.Join(t.TempDir(), "volume")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		plainfiletest.Nest(t, dir, levels)
		err := Give(dir, 4321, false)
		if refused && (err == nil || !strings.HasSuffix(err.Error(), "are nested deeper than 1000")) ||
			!refused && err != nil {
			t.Errorf("%d levels: %v", levels, err)
		}
		if info, err := os.Stat(dir); err != nil || (info.Sys().(*syscall.Stat_t).Gid == 4321) == refused {
			t.Errorf("%d levels: the folder is the group's: %t, %v", levels, refused, err)
		}
	}
}
