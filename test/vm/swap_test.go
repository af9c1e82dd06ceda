package vm

import (
	"slices"
	"strings"
	"testing"

	"keelson.dev/test/scenario"
)

// swap looks whether Pods stay out of the swap space of a host that has some, with and without limits of their own: one
// of the cgroups that hold them allows none.
func swap(t *testing.T, m *Mesh) {
	w := scenario.In(t, m)
	w.KubectlWith(ofEachClass, "apply", "-f", "-")
	w.Kubectl("wait", "--for=condition=Ready", "pods", "-l", "app=limits", "--timeout=80s")
	place := places{driver: cgroupfs, root: m.argument(t, "--cgroup-root")}
	for _, pod := range w.Pods("app=limits") {
		class := map[string]string{"burstable": "burstable", "best-effort": "besteffort"}[pod.Name]
		dir := place.container(&pod, class, "main")
		if got := m.Shell(t, "cd /sys/fs/cgroup"+dir+"; while [ -e memory.swap.max ]; do cat memory.swap.max; cd ..; "+
			"done"); !slices.Contains(strings.Fields(got), "0") {
			t.Errorf("the container of %s may have swap; the limits from its own up are %q", pod.Name, got)
		}
	}
}
