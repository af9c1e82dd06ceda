package room

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"keelson.dev/kit/noderesources"
)

func used(pods int64, requests ...string) noderesources.Usage {
	return noderesources.Usage{Pods: pods, Requests: list(requests...)}
}

// list makes a ResourceList of names and quantities in turn.
func list(pairs ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		out[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return out
}

func TestLacking(t *testing.T) {
	node := list("cpu", "2", "memory", "1Gi", "ephemeral-storage", "10Gi", "example.com/gpu", "2", "pods", "3")
	rows := []struct {
		name        string
		requests    corev1.ResourceList
		used        noderesources.Usage
		allocatable corev1.ResourceList
		want        string
	}{
		{"fits to the last", list("cpu", "500m"), used(1, "cpu", "1500m"), node, ""},
		{"a thousandth too much", list("cpu", "501m"), used(1, "cpu", "1500m"), node,
			"insufficient cpu, requested: 501m, used: 1500m, allocatable: 2"},
		{"memory", list("memory", "1Gi"), used(0), node, ""},
		{"a byte too much", list("memory", "1Gi"), used(1, "memory", "1"), node, "insufficient memory"},
		{"the node's disk", list("ephemeral-storage", "11Gi"), used(0), node, "insufficient ephemeral-storage"},
		{"an extended resource", list("example.com/gpu", "2"), used(0), node, ""},
		{"one device too many", list("example.com/gpu", "1"), used(1, "example.com/gpu", "2"), node,
			"insufficient example.com/gpu"},
		{"an extended resource that the node does not name", list("example.com/fpga", "1"), used(0), node, ""},
		{"and one that it has none of", list("example.com/fpga", "1"), used(0), list("example.com/fpga", "0"),
			"insufficient example.com/fpga"},
		{"beside one that it names", list("example.com/fpga", "1", "cpu", "3"), used(0), node, "insufficient cpu"},
		{"nothing asked of a full node", list("cpu", "0"), used(1, "cpu", "3"), node, ""},
		{"the last Pod", nil, used(2), node, ""},
		{"a Pod too many", nil, used(3), node, "too many pods, bound: 3, allocatable: 3"},
		{"a node that has said nothing yet", list("cpu", "1"), used(9), nil, ""},
		{"a node that does not count Pods", nil, used(9), list("cpu", "1"), ""},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			got := Lacking(row.requests, row.used, row.allocatable)
			if !strings.HasPrefix(got, row.want) || (got == "") != (row.want == "") {
				t.Errorf("%q, want %q", got, row.want)
			}
		})
	}
}
