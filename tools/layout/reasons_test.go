package layout

import (
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"
)

// docs/spec-status.md has exactly the reasons why Keelson does not act on fields of the API.
func TestTheDocsSayWhyNobodyActs(t *testing.T) {
	repository := os.DirFS("../..")
	page, err := fs.ReadFile(repository, "docs/spec-status.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(page), "\n| reason | fields |\n|---|---|\n")
	if !found {
		t.Fatal("the page has no table of reasons")
	}
	told := map[string]bool{}
	for row := range strings.Lines(table) {
		told[strings.TrimSpace(strings.Split(row, "|")[1])] = false
	}
	for field, reason := range leftAlone(t, repository) {
		if _, known := told[reason]; !known {
			t.Errorf("%s: the page does not say %q", field, reason)
		}
		told[reason] = true
	}
	for reason, met := range told {
		if !met {
			t.Errorf("no field is said to be left alone because %q", reason)
		}
	}
}

// leftAlone returns the reasons why Keelson does not act on fields, by the fields with their group and version.
func leftAlone(t *testing.T, repository fs.FS) map[string]string {
	t.Helper()
	files, err := fs.Glob(repository, "services/apiserver/internal/registry/testdata/fields/*.v*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no field is classified: %v", err)
	}
	reasons := map[string]string{}
	for _, file := range files {
		content, err := fs.ReadFile(repository, file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(content)) {
			field, text, _ := strings.Cut(strings.TrimSpace(line), "  ")
			if reason, alone := strings.CutPrefix(text, "nobody: "); alone {
				reasons[strings.TrimSuffix(path.Base(file), "txt")+field] = reason
			}
		}
	}
	if len(reasons) == 0 {
		t.Fatal("no field is left alone")
	}
	return reasons
}
