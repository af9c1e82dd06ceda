package reference_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"keelson.dev/cli/internal/command"
	"keelson.dev/cli/internal/reference"
)

var day = time.Date(2026, time.January, 31, 23, 30, 0, 0, time.FixedZone("far east", 14*60*60))

// written are the files that Write makes of keel, by their paths.
func written(t *testing.T) (dir string, files map[string][]byte) {
	t.Helper()
	dir, files = t.TempDir(), map[string][]byte{}
	if err := reference.Write(command.Root(), dir, day); err != nil {
		t.Fatal(err)
	}
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			files[path], err = os.ReadFile(filepath.Join(dir, path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir, files
}

func TestEachCommandHasAPageWithEachFlag(t *testing.T) {
	_, files := written(t)
	pages := 0
	var check func(*cobra.Command)
	check = func(c *cobra.Command) {
		pages++
		name := "man/man1/" + strings.ReplaceAll(c.CommandPath(), " ", "-") + ".1.gz"
		if files[name] == nil {
			t.Errorf("%s is missing", name)
			return
		}
		page := unpacked(t, files[name])
		if !strings.Contains(page, `"Jan 2026" "Keelson"`) {
			t.Errorf("%s is not dated by what it was given: %.100s", name, page)
		}
		c.Flags().VisitAll(func(flag *pflag.Flag) {
			if want := `\fB--` + flag.Name + `\fP`; !flag.Hidden && !strings.Contains(page, want) {
				t.Errorf("%s does not tell of --%s:\n%s", name, flag.Name, page)
			}
		})
		for _, below := range c.Commands() {
			check(below)
		}
	}
	check(command.Root())
	if pages < 10 {
		t.Errorf("keel has %d commands only", pages)
	}
}

func unpacked(t *testing.T, content []byte) string {
	t.Helper()
	reader, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	page, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

func TestNothingButTheCommandsAndTheDateIsInIt(t *testing.T) {
	_, before := written(t)
	t.Setenv("KEELSON_DATA_DIR", "/of/whoever/builds")
	_, after := written(t)
	for name, content := range after {
		if !bytes.Equal(content, before[name]) {
			t.Errorf("%s differs", name)
		}
	}
	if len(after) != len(before) || len(after) == 0 {
		t.Errorf("there are %d files, and %d of another run", len(after), len(before))
	}
}

// TestPrograms holds what is written against the programs that read it, as far as they are there.
func TestPrograms(t *testing.T) {
	dir, files := written(t)
	for _, reader := range []struct{ program, pattern, line string }{
		{"bash", "bash-completion/completions/keel", `bash -n "$1"`},
		{"zsh", "zsh/_keel", `zsh -n "$1"`},
		{"fish", "fish/vendor_completions.d/keel.fish", `fish -n "$1"`},
		{"man", "man/man1/*", `test -z "$(man --warnings -E UTF-8 -l -Tutf8 -Z "$1" 2>&1 >/dev/null)"`},
		{"mandoc", "man/man1/*", `gunzip -c "$1" | mandoc -Tlint -W error`},
	} {
		t.Run(reader.program, func(t *testing.T) {
			if _, err := exec.LookPath(reader.program); err != nil {
				t.Skipf("there is no %s here", reader.program)
			}
			read := 0
			for file := range files {
				if ok, err := filepath.Match(reader.pattern, file); err != nil || !ok {
					continue
				}
				read++
				run := exec.CommandContext(t.Context(), "sh", "-c", reader.line, "sh", filepath.Join(dir, file))
				if out, err := run.CombinedOutput(); err != nil {
					t.Errorf("%s of %s: %v\n%s", reader.program, file, err, out)
				}
			}
			if read == 0 {
				t.Errorf("there is nothing at %s", reader.pattern)
			}
		})
	}
}
