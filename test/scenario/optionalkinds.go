package scenario

import (
	"strings"
	"testing"

	"keelson.dev/test/mesh"
)

// OptionalKindsNotServed runs a Deployment from its beginning to its end on a mesh whose apiserver does not serve kinds
// that the daemons only look at where they are: the scheduler places its Pods, and podgc takes them away.
func OptionalKindsNotServed(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	for _, kind := range []string{"resourceclaims", "podgroups", "poddisruptionbudgets", "statefulsets", "jobs"} {
		if r := w.TryKubectl("", "get", kind); !strings.Contains(r.Stderr, "doesn't have a resource type") {
			t.Fatalf("%s are served, so that the scenario shows nothing: %s%s", kind, r.Stdout, r.Stderr)
		}
	}
	w.KubectlWith(web(3, HelloV1, ""), "apply", "-f", "-")
	w.AwaitAvailable("web", 3)
	w.Kubectl("delete", "deployment", "web")
	w.Kubectl("wait", "--for=delete", "pod", "--selector=app=web", "--timeout="+patience.String())
}
