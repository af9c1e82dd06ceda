package noderesources

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
)

// list makes a ResourceList of names and quantities in turn.
func list(pairs ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		out[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return out
}

func TestInsufficient(t *testing.T) {
	node := list("cpu", "2", "memory", "1Gi", "ephemeral-storage", "10Gi", "hugepages-2Mi", "4Mi",
		"example.com/gpu", "2", "pods", "3")
	type lack struct{ name, requested, used, capacity string }
	rows := []struct {
		name        string
		requests    corev1.ResourceList
		used        Usage
		allocatable corev1.ResourceList
		want        lack
	}{
		{"an empty node", list("cpu", "2", "memory", "1Gi"), Usage{}, node, lack{}},
		{"all that is left of the CPU", list("cpu", "500m"), Usage{1, list("cpu", "1500m")}, node, lack{}},
		{"a thousandth of a CPU more", list("cpu", "501m"), Usage{1, list("cpu", "1500m")}, node,
			lack{"cpu", "501m", "1500m", "2"}},
		{"all that is left of the memory", list("memory", "1Mi"), Usage{1, list("memory", "1023Mi")}, node, lack{}},
		{"a byte more", list("memory", "1Mi"), Usage{1, list("memory", "1072693249")}, node,
			lack{"memory", "1Mi", "1072693249", "1Gi"}},
		{"the whole disk", list("ephemeral-storage", "10Gi"), Usage{}, node, lack{}},
		{"a byte more than the disk", list("ephemeral-storage", "10737418241"), Usage{}, node,
			lack{"ephemeral-storage", "10737418241", "0", "10Gi"}},
		{"the last huge page", list("hugepages-2Mi", "2Mi"), Usage{1, list("hugepages-2Mi", "2Mi")}, node, lack{}},
		{"a huge page more", list("hugepages-2Mi", "4Mi"), Usage{1, list("hugepages-2Mi", "2Mi")}, node,
			lack{"hugepages-2Mi", "4Mi", "2Mi", "4Mi"}},
		{"the last device", list("example.com/gpu", "1"), Usage{1, list("example.com/gpu", "1")}, node, lack{}},
		{"a device more", list("example.com/gpu", "1"), Usage{1, list("example.com/gpu", "2")}, node,
			lack{"example.com/gpu", "1", "2", "2"}},
		{"an extended resource that the node does not name", list("example.com/fpga", "1"), Usage{}, node, lack{}},
		{"and one that it has none of", list("example.com/fpga", "1"), Usage{}, list("example.com/fpga", "0"),
			lack{"example.com/fpga", "1", "0", "0"}},
		{"a resource of its own that it does not name", list("hugepages-1Gi", "1Gi"), Usage{}, node,
			lack{"hugepages-1Gi", "1Gi", "0", "0"}},
		{"and one of the API's own domain", list("kubernetes.io/x", "1"), Usage{}, node,
			lack{"kubernetes.io/x", "1", "0", "0"}},
		{"nothing of a resource that the node does not have", list("example.com/fpga", "0"), Usage{}, node, lack{}},
		{"nothing of a resource that is used beyond what there is", list("cpu", "0", "memory", "1Gi"),
			Usage{1, list("cpu", "3")}, node, lack{}},
		{"no requests on a node used beyond what it has", nil, Usage{1, list("cpu", "3")}, node, lack{}},
		{"the first by name of two that do not suffice", list("memory", "2Gi", "cpu", "3"), Usage{}, node,
			lack{"cpu", "3", "0", "2"}},
		{"one that suffices before one that does not", list("memory", "2Gi", "cpu", "1"), Usage{}, node,
			lack{"memory", "2Gi", "0", "1Gi"}},
		{"the last Pod", list("cpu", "2"), Usage{Pods: 2}, node, lack{}},
		{"a Pod more", nil, Usage{Pods: 3}, node, lack{"pods", "1", "3", "3"}},
		{"two Pods more", nil, Usage{Pods: 4}, node, lack{"pods", "1", "4", "3"}},
		{"a Pod more that lacks CPU as well", list("cpu", "3"), Usage{Pods: 3}, node, lack{"pods", "1", "3", "3"}},
		{"a node that takes no Pod", nil, Usage{}, list("pods", "0"), lack{"pods", "1", "0", "0"}},
		{"a node that does not count Pods", list("cpu", "1"), Usage{Pods: 99}, list("cpu", "1"), lack{}},
		{"a node that has nothing", list("cpu", "1m"), Usage{}, nil, lack{"cpu", "1m", "0", "0"}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			got := lack{}
			if in := row.used.Insufficient(row.requests, row.allocatable); in != nil {
				got = lack{string(in.Name), in.Requested.String(), in.Used.String(), in.Capacity.String()}
			}
			if got != row.want {
				t.Errorf("lacks %+v, want %+v", got, row.want)
			}
		})
	}
}

// Adding and removing are each other's inverse, and neither touches the requests of a Pod.
func TestUsage(t *testing.T) {
	var u Usage
	first, second := list("cpu", "100m"), list("cpu", "250m", "memory", "1Mi")
	steps := []struct {
		name string
		do   func()
		want Usage
	}{
		{"the first Pod", func() { u.Add(first) }, Usage{1, list("cpu", "100m")}},
		{"a Pod of two resources", func() { u.Add(second) }, Usage{2, list("cpu", "350m", "memory", "1Mi")}},
		{"a Pod without requests", func() { u.Add(nil) }, Usage{3, list("cpu", "350m", "memory", "1Mi")}},
		{"the same Pod twice", func() { u.Add(first) }, Usage{4, list("cpu", "450m", "memory", "1Mi")}},
		{"a Pod less", func() { u.Remove(second) }, Usage{3, list("cpu", "200m", "memory", "0")}},
		{"one without requests less", func() { u.Remove(nil) }, Usage{2, list("cpu", "200m", "memory", "0")}},
		{"the last ones", func() { u.Remove(first); u.Remove(first) }, Usage{0, list("cpu", "0", "memory", "0")}},
	}
	for _, step := range steps {
		step.do()
		if u.Pods != step.want.Pods || !apiequality.Semantic.DeepEqual(u.Requests, step.want.Requests) {
			t.Fatalf("%s: %+v, want %+v", step.name, u, step.want)
		}
	}
	if want := list("cpu", "100m"); !apiequality.Semantic.DeepEqual(first, want) {
		t.Errorf("the Pod's requests became %v", first)
	}
}

// A Pod fits if and only if what is used with it stays within what the node has.
func TestFitsWithItself(t *testing.T) {
	for _, row := range []struct {
		left string
		fits bool
	}{{"99m", false}, {"100m", true}, {"101m", true}} {
		used := Usage{}
		if fits := used.Insufficient(list("cpu", "100m"), list("cpu", row.left)) == nil; fits != row.fits {
			t.Errorf("100m of %s: fits %v", row.left, fits)
		}
	}
}
