package node

import (
	"context"
	"testing"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"keelson.dev/kit/conditions"
)

// An extended resource that an administrator adds is reported as allocatable, and Pods may use it as soon as the
// node sees it.
func TestExtendedResources(t *testing.T) {
	const dongle = "example.com/dongle"
	client := fake.NewClientset()
	well := func(context.Context) Health { return Health{} }
	n := New(Config{Client: client, Log: zap.NewNop(), Facts: facts(), Health: well})
	if err := n.Register(t.Context()); err != nil {
		t.Fatal(err)
	}
	get := func() *corev1.Node {
		t.Helper()
		stored, err := client.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return stored
	}
	stored := get()
	stored.Status.Capacity[dongle] = resource.MustParse("4")
	stored, err := client.CoreV1().Nodes().UpdateStatus(t.Context(), stored, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	n.Observe(stored)
	if got := n.Current().Status.Allocatable[dongle]; got.Value() != 4 {
		t.Errorf("Pods may use %v of the resource, want 4", got.String())
	}
	select {
	case <-n.look:
	default:
		t.Error("the node does not look at once when somebody changes its resources")
	}
	if err := n.report(t.Context()); err != nil {
		t.Fatal(err)
	}
	status := get().Status
	if capacity, allocatable := status.Capacity[dongle], status.Allocatable[dongle]; capacity.Value() != 4 ||
		allocatable.Value() != 4 {
		t.Errorf("after a report capacity is %v and allocatable %v, want 4", capacity.String(), allocatable.String())
	}
	if cpu := status.Allocatable.Cpu(); cpu.MilliValue() != 2000 {
		t.Errorf("allocatable CPU %v, want 2", cpu)
	}
}

// The node has the devices of plugins, of which Pods may use the healthy ones; it has none of an absent plugin.
func TestDevices(t *testing.T) {
	const led = "example.com/led"
	client := fake.NewClientset()
	list := func(n string) corev1.ResourceList { return corev1.ResourceList{led: resource.MustParse(n)} }
	all, well := list("3"), list("2")
	n := New(Config{Client: client, Log: zap.NewNop(), Facts: facts(),
		Health:  func(context.Context) Health { return Health{} },
		Devices: func() (corev1.ResourceList, corev1.ResourceList) { return all, well }})
	if err := n.Register(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		stored, err := client.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		now := n.Current().Status.Allocatable[led]
		capacity, allocatable := stored.Status.Capacity[led], stored.Status.Allocatable[led]
		wantAll, wantWell := all[led], well[led]
		if !capacity.Equal(wantAll) || !allocatable.Equal(wantWell) || !now.Equal(wantWell) {
			t.Errorf("capacity %v, allocatable %v, now %v", capacity.String(), allocatable.String(), now.String())
		}
		all, well = list("0"), list("0")
		if err := n.report(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// A node that was marked unreachable, for example because its machine was suspended, reports its health at once.
func TestTakenForSilent(t *testing.T) {
	client := fake.NewClientset()
	well := func(context.Context) Health { return Health{} }
	n := New(Config{Client: client, Log: zap.NewNop(), Facts: facts(), Health: well})
	if err := n.Register(t.Context()); err != nil {
		t.Fatal(err)
	}
	ready := func() *corev1.NodeCondition {
		t.Helper()
		stored, err := client.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return conditions.Node.Find(stored.Status.Conditions, corev1.NodeReady)
	}
	looks := func() bool {
		select {
		case <-n.look:
			return true
		default:
			return false
		}
	}
	stored := n.Current().DeepCopy()
	if n.Observe(stored); looks() {
		t.Error("the node looks at once for what it has said itself")
	}
	conditions.Node.Find(stored.Status.Conditions, corev1.NodeReady).Status = corev1.ConditionUnknown
	stored, err := client.CoreV1().Nodes().UpdateStatus(t.Context(), stored, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if n.Observe(stored); !looks() {
		t.Error("the node does not look at once")
	}
	if err := n.report(t.Context()); err != nil || ready().Status != corev1.ConditionTrue {
		t.Errorf("after a report it is ready: %s, error %v", ready().Status, err)
	}
}
