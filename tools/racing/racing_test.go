package racing

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"testing"
)

func TestStarts(t *testing.T) {
	for name, row := range map[string]struct {
		content string
		want    bool
	}{
		"one thing after another":       {"import \"fmt\"\nfunc f() { fmt.Println() }", false},
		"a goroutine":                   {"func f() { go f() }", true},
		"a channel":                     {"var c chan int", true},
		"a select":                      {"func f() { select {} }", true},
		"a wait group":                  {"func f() { all.Go(f) }", true},
		"a timer":                       {"func f() { time.AfterFunc(1, f) }", true},
		"tests at the same time":        {"func f() { t.Parallel() }", true},
		"a function of that name":       {"func f() { Go() }", false},
		"a lock":                        {"import \"sync\"", true},
		"a number that many change":     {"import \"sync/atomic\"", true},
		"a server":                      {"import \"net/http/httptest\"", true},
		"addresses, which serve nobody": {"import \"net/netip\"", false},
		"a client":                      {"import \"k8s.io/client-go/kubernetes\"", true},
		"a package whose name is alike": {"import \"synced\"", false},
	} {
		t.Run(name, func(t *testing.T) {
			file, err := parser.ParseFile(token.NewFileSet(), "a.go", "package a\n"+row.content, 0)
			if err != nil {
				t.Fatal(err)
			}
			if got := Starts(file); got != row.want {
				t.Errorf("%v, want %v", got, row.want)
			}
		})
	}
}

func TestAnyFileDecides(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	calm, test := write("a.go", "package a\n"), write("a_test.go", "package a\nfunc f() { go f() }\n")
	broken := write("b.go", "package a\nfunc {")
	for _, row := range []struct {
		files       []string
		want, wrong bool
	}{{nil, false, false}, {[]string{calm}, false, false}, {[]string{calm, test}, true, false},
		{[]string{calm, broken}, false, true}} {
		if got, err := Any(row.files); got != row.want || (err != nil) != row.wrong {
			t.Errorf("%v: %v, error %v", row.files, got, err)
		}
	}
}
