package daemonset

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// placedOn names the nodes, with "?" after those that only keep their Pods.
func placedOn(p *Placement, set *appsv1.DaemonSet) []string {
	places, names := p.Of(set), []string{}
	for at, place := range places.list {
		name := place.node
		if places.at[name] != at {
			name = "misplaced " + name
		}
		if place.verdict == keeps {
			name += "?"
		}
		names = append(names, name)
	}
	return names
}

func named(requests []reconcile.Request) []string {
	var names []string
	for _, r := range requests {
		names = append(names, r.Namespace+"/"+r.Name)
	}
	slices.Sort(names)
	return names
}

// SET-114 SET-116 SET-126 SET-152: a node's change concerns the DaemonSets alone to which it makes a difference.
func TestPlacement(t *testing.T) {
	of := func(name, disk string) *appsv1.DaemonSet {
		return newSet(func(set *appsv1.DaemonSet) {
			set.Name, set.UID = name, types.UID(name)
			if disk != "" {
				set.Spec.Template.Spec.NodeSelector = map[string]string{"disk": disk}
			}
		})
	}
	node := func(name, disk string, taints ...corev1.Taint) *corev1.Node {
		n := newNode(name, taints...)
		if disk != "" {
			n.Labels["disk"] = disk
		}
		return n
	}
	all, ssd, hdd := of("all", ""), of("ssd", "ssd"), of("hdd", "hdd")
	p := NewPlacement()
	if got := p.Put(node("b", "ssd")); len(got) > 0 {
		t.Errorf("%v wake up before they were asked for", got)
	}
	expect := func(set *appsv1.DaemonSet, want ...string) {
		t.Helper()
		if got := placedOn(p, set); !slices.Equal(got, want) {
			t.Errorf("%s runs on %v, want %v", set.Name, got, want)
		}
	}
	woken := func(requests []reconcile.Request, want ...string) {
		t.Helper()
		if got := named(requests); !slices.Equal(got, want) {
			t.Errorf("%v wake up, want %v", got, want)
		}
	}
	expect(all, "b")
	expect(ssd, "b")
	expect(hdd)
	before := p.Of(all)

	woken(p.Put(node("a", "")), "default/all")
	expect(all, "a", "b")
	if len(before.list) != 1 || len(before.at) != 1 {
		t.Error("what was handed out changed")
	}
	heartbeat := node("a", "")
	heartbeat.ResourceVersion, heartbeat.Status.Phase = "2", corev1.NodeRunning
	woken(p.Put(heartbeat))
	woken(p.Put(node("a", "nvme")))
	woken(p.Put(node("a", "hdd")), "default/hdd")
	expect(hdd, "a")
	woken(p.Put(node("b", "hdd")), "default/hdd", "default/ssd")
	expect(hdd, "a", "b")
	expect(ssd)
	woken(p.Put(node("b", "hdd", corev1.Taint{Key: "x", Effect: corev1.TaintEffectNoSchedule})), "default/all",
		"default/hdd")
	expect(all, "a", "b?")
	woken(p.Put(node("b", "hdd", corev1.Taint{Key: "node.kubernetes.io/unschedulable",
		Effect: corev1.TaintEffectNoSchedule})), "default/all", "default/hdd")
	expect(all, "a", "b")
	woken(p.Put(node("b", "hdd")))

	woken(p.Remove(node("b", "hdd")), "default/all", "default/hdd")
	expect(all, "a")
	if p.Exists("b") || !p.Exists("a") {
		t.Errorf("b exists: %t, a exists: %t", p.Exists("b"), p.Exists("a"))
	}
	woken(p.Put(node("b", "hdd")), "default/all", "default/hdd")

	other := of("all", "hdd")
	other.Generation++
	other.Spec.Template.Spec.NodeName = "b"
	expect(other, "b")
	p.Forget(hdd)
	woken(p.Remove(node("a", "")))
	woken(p.Remove(node("b", "")), "default/all")
}

// The list of a DaemonSet's nodes is made anew only when it is another.
func TestPlacesAreKept(t *testing.T) {
	p, set := NewPlacement(), newSet()
	p.Put(newNode("a"))
	first := p.Of(set)
	if p.Put(newNode("a")); p.Of(set) != first {
		t.Error("a change that means nothing makes a new list")
	}
	if p.Put(newNode("b")); p.Of(set) == first {
		t.Error("another node makes no new list")
	}
}
