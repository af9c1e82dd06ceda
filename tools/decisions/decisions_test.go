package decisions

import (
	"reflect"
	"testing"
	"testing/fstest"
)

func TestIn(t *testing.T) {
	const plain = "// Package p acts.\npackage p\n"
	const pure = "// Package p decides.\n//\n//keelson:decision\npackage p\n"
	for name, c := range map[string]struct {
		files map[string]string
		want  Package
	}{
		"by name": {map[string]string{"decide.go": plain, "decide_more.go": plain, "act.go": plain,
			"act_test.go": plain, "decide_test.go": plain, "sub/decide.go": plain, "page.md": ""},
			Package{Files: []string{"decide.go", "decide_more.go"}, Others: []string{"act.go"},
				Tests: []string{"act_test.go", "decide_test.go"}}},
		"by the marker": {map[string]string{"b.go": plain, "a.go": pure, "decide.go": plain},
			Package{Marked: true, Files: []string{"decide.go", "a.go", "b.go"}}},
		"a marker below the clause": {map[string]string{"a.go": plain + "\n//keelson:decision\n"},
			Package{Others: []string{"a.go"}}},
		"a marker within a line": {map[string]string{"a.go": "// see //keelson:decision\npackage p\n"},
			Package{Others: []string{"a.go"}}},
		"a marker of another name": {map[string]string{"a.go": "//keelson:decisions\npackage p\n"},
			Package{Others: []string{"a.go"}}},
		"a marker in a test": {map[string]string{"a.go": plain, "a_test.go": pure},
			Package{Others: []string{"a.go"}, Tests: []string{"a_test.go"}}},
		"first line": {map[string]string{"a.go": "//keelson:decision\npackage p\n"},
			Package{Marked: true, Files: []string{"a.go"}}},
		"no Go": {map[string]string{"page.md": ""}, Package{}},
	} {
		files := fstest.MapFS{}
		for file, content := range c.files {
			files["p/"+file] = &fstest.MapFile{Data: []byte(content)}
		}
		if got, err := In(files, "p"); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, c.want)
		}
	}
	if _, err := In(fstest.MapFS{}, "none"); err == nil {
		t.Error("a folder that is missing is no error")
	}
}
