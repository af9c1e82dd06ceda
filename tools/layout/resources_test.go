package layout

import (
	"strings"
	"testing"
	"testing/fstest"
)

func TestCheckResources(t *testing.T) {
	const (
		library = "k8s.io/apiserver/pkg/registry/rest"
		folder  = apiserver + "registry/apps/deployment"
		pod     = apiserver + "registry/core/pod"
	)
	importing := func(all ...string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("package a\nimport (\n\"" + strings.Join(all, "\"\n\"") + "\"\n)\n")}
	}
	type tree = fstest.MapFS
	for name, c := range map[string]struct {
		files tree
		want  string // part of the one finding; empty when there must be none
	}{
		"a resource that imports the library": {tree{folder + "/resource.go": importing("fmt", library)},
			folder + ": imports " + library},
		"one that comes to it by others": {tree{
			folder + "/resource.go":   importing(keelson + apiserver + "a"),
			apiserver + "a/a.go":      importing(keelson + apiserver + "b"),
			apiserver + "b/b.go":      importing(library),
			apiserver + "b/b_test.go": importing("fmt"),
		}, "imports a, which imports b, which imports " + library},
		"what a resource is made of": {tree{apiserver + "resource/resource.go": importing(library)},
			apiserver + "resource: imports"},
		"one whose test imports it": {tree{folder + "/server_test.go": importing(library)},
			"has a test that imports " + library},
		"one that serves, with its test": {tree{pod + "/log.go": importing(library),
			pod + "/server_test.go": importing(library)}, ""},
		"one with data of it":         {tree{folder + "/a.go": importing("k8s.io/apiserver/pkg/cel")}, ""},
		"one with another part":       {tree{folder + "/a.go": importing("k8s.io/apiserver/pkg/cel/lazy")}, "cel/lazy"},
		"a package beside a resource": {tree{folder + "/rollback/a.go": importing(library)}, ""},
		"a group's own package":       {tree{apiserver + "registry/metrics/entries.go": importing(library)}, ""},
		"one that serves":             {tree{pod + "/log.go": importing(library)}, ""},
		"one that serves no more":     {tree{pod + "/log.go": importing("fmt")}, "take it off servingFolders"},
	} {
		t.Run(name, func(t *testing.T) {
			findings, err := checkResources(c.files)
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case c.want == "" && len(findings) > 0:
				t.Errorf("found %v, want nothing", findings)
			case c.want != "" && (len(findings) != 1 || !strings.Contains(findings[0].String(), c.want)):
				t.Errorf("found %v, want one with %q", findings, c.want)
			}
		})
	}
}
