package room

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/noderesources"
)

func node(allocatable ...string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"},
		Status: corev1.NodeStatus{Allocatable: list(allocatable...)}}
}

func pod(name, cpu string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, Spec: corev1.PodSpec{
		NodeName:   "n",
		Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: list("cpu", cpu)}}},
	}}
}

func hold(t *testing.T, l *ledger, p *corev1.Pod, n *corev1.Node) *Reservation {
	t.Helper()
	held, err := l.reserve(p, n)
	if err != nil {
		t.Fatal(err)
	}
	return held
}

func refused(t *testing.T, l *ledger, p *corev1.Pod, n *corev1.Node) {
	t.Helper()
	if _, err := l.reserve(p, n); !errors.As(err, new(*Full)) {
		t.Errorf("%s was taken in: %v", p.Name, err)
	}
}

// TestReservations: room is taken from the reservation until the Pod is gone, whatever comes in between.
func TestReservations(t *testing.T) {
	n := node("cpu", "2", "pods", "9")
	l := newLedger()
	a := hold(t, l, pod("a", "2"), n)
	refused(t, l, pod("b", "1m"), n)
	a.Release()
	a = hold(t, l, pod("a", "2"), n)
	again := hold(t, l, pod("a", "2"), n) // another binding of the same Pod to the same node
	again.Release()
	refused(t, l, pod("b", "1m"), n)
	a.Keep()
	refused(t, l, pod("b", "1m"), n)
	l.set(pod("a", "2"))
	refused(t, l, pod("b", "1m"), n)
	l.set(pod("a", "1")) // resized
	b := hold(t, l, pod("b", "1"), n)
	b.Keep()
	l.drop(pod("a", "1"))
	hold(t, l, pod("c", "1"), n).Keep()
	refused(t, l, pod("d", "1m"), n)
}

// TestForget: a list frees the room of what it does not have, but not of what came after it was asked for.
func TestForget(t *testing.T) {
	n := node("cpu", "4", "pods", "9")
	l := newLedger()
	l.set(pod("gone", "1"))
	l.set(pod("there", "1"))
	writing := hold(t, l, pod("writing", "1"), n)
	mark := l.mark()
	hold(t, l, pod("later", "1"), n).Keep()
	refused(t, l, pod("x", "1"), n)
	l.forget("n", mark, map[types.UID]bool{"there": true})
	hold(t, l, pod("y", "1"), n).Keep()
	refused(t, l, pod("x", "1m"), n)
	writing.Release()
	hold(t, l, pod("x", "1"), n).Keep()
}

// TestSums: after any course of events the sums are those of the Pods that are left.
func TestSums(t *testing.T) {
	n := node("cpu", "1000", "pods", "1000")
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 1))
		l := newLedger()
		for range 200 {
			p := pod(fmt.Sprint(random.IntN(20)), fmt.Sprintf("%dm", random.IntN(3)*100))
			switch random.IntN(5) {
			case 0:
				hold(t, l, p, n).Release()
			case 1:
				hold(t, l, p, n).Keep()
			case 2:
				l.set(p)
			case 3:
				l.drop(p)
			case 4:
				l.replace([]corev1.Pod{*p}, l.mark())
			}
			want := noderesources.Usage{}
			for k, e := range l.entries {
				if !slices.Contains(l.byNode[k.node], k.pod) {
					t.Fatalf("seed %d: %v is not listed with its node", seed, k)
				}
				want.Add(e.requests)
			}
			if listed := len(l.byNode["n"]); listed != len(l.entries) {
				t.Fatalf("seed %d: %d Pods are listed with the node, want %d", seed, listed, len(l.entries))
			}
			got := noderesources.Usage{}
			if on := l.nodes["n"]; on != nil {
				got = *on
			}
			if gotCPU, wantCPU := got.Requests["cpu"], want.Requests["cpu"]; got.Pods != want.Pods ||
				gotCPU.Cmp(wantCPU) != 0 {
				t.Fatalf("seed %d: %+v, want %+v", seed, got, want)
			}
		}
	}
}

// BenchmarkReserve is the room's part of one binding to a node that has 100 Pods.
func BenchmarkReserve(b *testing.B) {
	n := node("cpu", "1000", "memory", "1Ti", "pods", "1000")
	l := newLedger()
	for i := range 100 {
		l.set(pod(fmt.Sprint(i), "100m"))
	}
	p := pod("p", "100m")
	b.ReportAllocs()
	for b.Loop() {
		held, err := l.reserve(p, n)
		if err != nil {
			b.Fatal(err)
		}
		held.Release()
	}
}

// DEP-214: a Pod that is resized holds the greater of what it has and what it asks for, until its node says otherwise.
func TestRequestedWhileResized(t *testing.T) {
	p := pod("a", "1")
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", AllocatedResources: list("cpu", "3"),
		Resources: &corev1.ResourceRequirements{Requests: list("cpu", "2")}}}
	for _, row := range []struct {
		generation int64
		want       string
	}{{1, "1"}, {2, "3"}} {
		p.Generation = row.generation
		if got := requested(p)["cpu"]; got.String() != row.want {
			t.Errorf("generation %d holds %s, want %s", row.generation, &got, row.want)
		}
	}
	p.Spec.Resources = &corev1.ResourceRequirements{Requests: list("cpu", "4")}
	p.Status.Resources = &corev1.ResourceRequirements{Requests: list("cpu", "5")}
	if got := requested(p)["cpu"]; got.String() != "5" {
		t.Errorf("as a whole it holds %s, want 5", &got)
	}
}

// What Pods alike ask for lies once in memory, however many are bound.
func TestRequestsShareMemory(t *testing.T) {
	l := newLedger()
	first := pod("a", "1")
	hold(t, l, first, node("cpu", "8"))
	l.set(pod("b", "1"))
	l.set(pod("c", "2"))
	of := func(name types.UID) uintptr { return reflect.ValueOf(l.entries[key{name, "n"}].requests).Pointer() }
	if of("a") != of("b") || of("a") == of("c") {
		t.Errorf("requests lie at %#x, %#x and, of another size, %#x", of("a"), of("b"), of("c"))
	}
}
