package applet

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// call runs a command in an empty folder and returns its status and what it printed.
func call(t *testing.T, in, name string, args ...string) (code int, out, errOut string) {
	t.Helper()
	var outBuffer, errBuffer bytes.Buffer
	code = Run(name, args, Streams{In: strings.NewReader(in), Out: &outBuffer, Err: &errBuffer})
	return code, outBuffer.String(), errBuffer.String()
}

func TestCommands(t *testing.T) {
	for _, c := range []struct {
		line string // words apart by spaces
		in   string
		code int
		out  string
	}{
		{"true", "", 0, ""},
		{"false", "", 1, ""},
		{"exit 42", "", 42, ""},
		{"exit 256", "", 1, ""},
		{"echo a b", "", 0, "a b\n"},
		{"echo -n a", "", 0, "a"},
		{"cat", "from the input", 0, "from the input"},
		{"cat one two", "", 0, "1\n2\n"},
		{"cat one missing two", "", 1, "1\n2\n"},
		{"ls", "", 0, "dir\none\ntwo\n"},
		{"ls dir", "", 0, "three\n"},
		{"ls -d dir", "", 0, "dir\n"},
		{"ls -x", "", 1, ""},
		{"head -n 1", "a\nb\n", 0, "a\n"},
		{"head -c 1", "ab", 0, "a"},
		{"tail -n 1", "a\nb\n", 0, "b\n"},
		{"tail -n 1", "a\nb", 0, "b"},
		{"wc -l", "a\nb\n", 0, "2\n"},
		{"wc", "a b\n", 0, "1 2 4\n"},
		{"seq 3", "", 0, "1\n2\n3\n"},
		{"seq 2 3", "", 0, "2\n3\n"},
		{"grep b", "abc\nxyz\n", 0, "abc\n"},
		{"grep -v b", "abc\nxyz\n", 0, "xyz\n"},
		{"grep -q z", "abc\n", 1, ""},
		{"grep -c a", "a\nba\n", 0, "2\n"},
		{"grep -F a.c", "abc\na.c\n", 0, "a.c\n"},
		{"stat -c %a:%s one", "", 0, "640:2\n"},
		{"id -x", "", 1, ""},
		{"sleep 0.001", "", 0, ""},
		{"sleep soon", "", 1, ""},
		{"kill -NOSUCH 1", "", 1, ""},
		{"nosuchcommand", "", 127, ""},
	} {
		t.Run(c.line, func(t *testing.T) {
			t.Chdir(folder(t))
			words := strings.Fields(c.line)
			code, out, errOut := call(t, c.in, words[0], words[1:]...)
			if code != c.code || out != c.out {
				t.Errorf("status %d, output %q, error %q; want status %d, output %q", code, out, errOut, c.code, c.out)
			}
			if code != 0 && code != 42 && errOut == "" && words[0] != "false" && words[0] != "grep" {
				t.Error("it failed and said nothing")
			}
		})
	}
}

// folder holds what the cases read.
func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{"one": "1\n", "two": "2\n", "dir/three": "3\n"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestFilesAreMadeMovedAndRemoved(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, line := range []string{"mkdir -p a/b", "touch a/b/c", "cp a/b/c d", "cp -r a e", "mv d f", "ln -s f g",
		"chmod 600 f", "rm -r a", "rm -f missing"} {
		words := strings.Fields(line)
		if code, _, errOut := call(t, "", words[0], words[1:]...); code != 0 {
			t.Fatalf("%s: %s", line, errOut)
		}
	}
	if _, out, _ := call(t, "", "ls"); out != "e\nf\ng\n" {
		t.Errorf("left %q", out)
	}
	if _, out, _ := call(t, "", "readlink", "g"); out != "f\n" {
		t.Errorf("the link shows %q", out)
	}
	if code, _, _ := call(t, "", "rm", "e"); code == 0 {
		t.Error("rm without -r removed a folder that is not empty")
	}
}

// kubectl cp packs on one side and unpacks on the other.
func TestTarRoundTrip(t *testing.T) {
	source, target := folder(t), t.TempDir()
	code, packed, errOut := call(t, "", "tar", "cf", "-", "-C", source, "one", "dir")
	if code != 0 {
		t.Fatal(errOut)
	}
	if code, _, errOut = call(t, packed, "tar", "-xmf", "-", "-C", target); code != 0 {
		t.Fatal(errOut)
	}
	for name, want := range map[string]string{"one": "1\n", "dir/three": "3\n"} {
		if got, err := os.ReadFile(filepath.Join(target, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if _, out, _ := call(t, packed, "tar", "tf", "-"); out != "one\ndir/\ndir/three\n" {
		t.Errorf("listed %q", out)
	}
}

func TestTarStaysInItsFolder(t *testing.T) {
	parent := t.TempDir()
	t.Chdir(parent)
	for _, dir := range []string{"source", "target"} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile("outside", []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	code, packed, errOut := call(t, "", "tar", "cf", "-", "-C", "source", "../outside")
	if code != 0 {
		t.Fatal(errOut)
	}
	if err := os.Remove("outside"); err != nil {
		t.Fatal(err)
	}
	if code, _, _ := call(t, packed, "tar", "xf", "-", "-C", "target"); code == 0 {
		t.Error("an entry that leads out of the folder was accepted")
	}
	if _, err := os.Stat("outside"); err == nil {
		t.Error("the entry was written outside")
	}
}

func TestShell(t *testing.T) {
	for script, want := range map[string]struct {
		code int
		out  string
	}{
		"echo a; exit 3":                 {3, "a\n"},
		"false || echo b":                {0, "b\n"},
		"for i in 1 2; do echo $i; done": {0, "1\n2\n"},
		"x=$(echo inner); echo \"<$x>\" > f; read y < f; echo $y": {0, "<inner>\n"},
		"trap 'echo bye' EXIT; echo hi":                           {0, "hi\nbye\n"},
		"echo $0 $1":                                              {0, "name one\n"},
		"[ -e /nosuchfile ] && echo there || echo not":            {0, "not\n"},
		"set -e; false; echo never":                               {1, ""},
	} {
		t.Run(script, func(t *testing.T) {
			t.Chdir(t.TempDir())
			code, out, errOut := call(t, "", "sh", "-c", script, "name", "one")
			if code != want.code || out != want.out {
				t.Errorf("status %d, output %q, error %q; want %+v", code, out, errOut, want)
			}
		})
	}
	if code, out, _ := call(t, "echo from; echo stdin\nexit 4\necho never\n", "sh"); code != 4 ||
		out != "from\nstdin\n" {
		t.Errorf("from the input: status %d, output %q", code, out)
	}
}
