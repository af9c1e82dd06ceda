package layout

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

var (
	// namedTest is how docs/explanation/security.md names a test: its package's folder and its function.
	namedTest = regexp.MustCompile("`(\\w+)\\.((?:Test|Fuzz)\\w+)`")
	// declaredTest is a test in a file.
	declaredTest = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
)

// What docs/explanation/security.md says bounds an attacker names the test that breaks when it no longer does, and that
// test is there. What is not bounded, and what is to be switched on, stands below.
func TestEverySentenceOfSecurityNamesItsTest(t *testing.T) {
	repository := os.DirFS("../..")
	page, err := fs.ReadFile(repository, "docs/explanation/security.md")
	if err != nil {
		t.Fatal(err)
	}
	bounds, _, found := strings.Cut(string(page), "## What an operator switches on")
	if !found {
		t.Fatal("the page has no part for operators")
	}
	declared := testsOf(t, repository)
	for i, item := range strings.Split(bounds, "\n* ") {
		names := namedTest.FindAllStringSubmatch(item, -1)
		if first, _, _ := strings.Cut(item, "\n"); i > 0 && len(names) == 0 {
			t.Errorf("%q names no test", first)
		}
		for _, name := range names {
			if !declared[name[1]+"."+name[2]] {
				t.Errorf("there is no %s in a folder %s", name[2], name[1])
			}
		}
	}
}

// testsOf returns the tests of a repository by the folders of their packages.
func testsOf(t *testing.T, repository fs.FS) map[string]bool {
	t.Helper()
	tests := map[string]bool{}
	err := fs.WalkDir(repository, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, "_test.go") {
			return err
		}
		content, err := fs.ReadFile(repository, name)
		for _, test := range declaredTest.FindAllStringSubmatch(string(content), -1) {
			tests[path.Base(path.Dir(name))+"."+test[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return tests
}
