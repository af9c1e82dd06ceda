package plan

import "testing"

func TestShimSocketIsWhereContainerdPutsIt(t *testing.T) {
	// The hash is that of /data/nodes/node-1/containerd.sock/k8s.io/pod.
	want := "/run/containerd/s/cd52db2d14bc54463e7c99215cb0353c76fc3354edc0d3da148c6f44afb058ff"
	if got := (Layout{Dir: "/data"}).Node("node-1").ShimSocket("pod"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
