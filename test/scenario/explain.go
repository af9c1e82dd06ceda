package scenario

import (
	"regexp"
	"strings"
	"testing"

	"keelson.dev/test/mesh"
)

// explainedKind is what kubectl explain --recursive prints of a kind that the document of its version describes.
var explainedKind = regexp.MustCompile(`(?s)^(?:GROUP: +\S+\n)?KIND: +(\S+)\nVERSION: +(\S+)\n\n` +
	`DESCRIPTION:\n {4}\w.*\nFIELDS:\n(?: +\S+\t<.*\n){4,}`)

// KubectlExplain asks what each kind is that the mesh serves, with all of its fields, in each of its versions.
func KubectlExplain(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	_, lists, err := w.Client.Discovery().ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	for _, list := range lists {
		for i := range list.APIResources {
			r := &list.APIResources[i]
			if strings.Contains(r.Name, "/") {
				continue
			}
			asked++
			out := w.Kubectl("explain", r.Name, "--api-version="+list.GroupVersion, "--recursive")
			version := list.GroupVersion[strings.Index(list.GroupVersion, "/")+1:]
			if got := explainedKind.FindStringSubmatch(out); got == nil || got[1] != r.Kind || got[2] != version {
				t.Errorf("kubectl explain %s of %s prints\n%s", r.Name, list.GroupVersion, out)
			}
		}
	}
	if asked < 70 {
		t.Errorf("%d kinds are served: the scenario sees too few", asked)
	}
}
