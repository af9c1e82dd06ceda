package cycle_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// besideApp makes the Pod ask for a Pod of an app in its zone.
func besideApp(app string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
				{TopologyKey: corev1.LabelTopologyZone,
					LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}}}}}
	}
}

// p of app x and priority 100 is nominated for node n of zone a, where another leaves. It counts there for those that
// come after it, and may still go elsewhere. Each other Pod asks for no room.
func TestNomineesCountInDomains(t *testing.T) {
	running := func(name, node string) func(*preempting) {
		return func(f *preempting) { f.running(pod(name, "0", onNode(node), labelled("x"))) }
	}
	nothing := func(*preempting) {}
	for name, test := range map[string]struct {
		nominee []func(*corev1.Pod)
		before  func(*preempting)
		other   []func(*corev1.Pod)
		// Where the other Pod goes while p waits, when p has gone, and when p is bound.
		waits, gone, bound string
	}{
		"apart from p": {nil, nothing, []func(*corev1.Pod){apartFrom("x")}, "-", "n", "-"},
		"apart from p, of the same priority": {nil, nothing, []func(*corev1.Pod){apartFrom("x"), withPriority(100)},
			"-", "n", "-"},
		"apart from p, of higher priority": {nil, nothing, []func(*corev1.Pod){apartFrom("x"), withPriority(101)},
			"n", "n", "n"},
		"p is apart from it": {[]func(*corev1.Pod){apartFrom("y")}, nothing, []func(*corev1.Pod){labelled("y")}, "-",
			"n", "-"},
		"beside p": {nil, nothing, []func(*corev1.Pod){besideApp("x")}, "-", "-", "n"},
		"beside p, of higher priority": {nil, nothing, []func(*corev1.Pod){besideApp("x"), withPriority(101)}, "-", "-",
			"n"},
		"spread, p makes one too many": {nil, func(f *preempting) {
			f.node("m", "0", inZone("b"))
			f.running(pod("m1", "1", onNode("m"), labelled("x")), pod("n1", "0", onNode("n"), labelled("x")))
			f.node("m", "0", inZone("b"), cordoned)
		}, []func(*corev1.Pod){labelled("x"), evenly}, "-", "n", "-"},
		"spread, p makes the least": {nil, func(f *preempting) {
			f.node("m", "0", inZone("b"), cordoned)
			running("m1", "m")(f)
			running("m2", "m")(f)
		}, []func(*corev1.Pod){labelled("x"), evenly}, "n", "n", "n"},
		"another app": {nil, nothing, []func(*corev1.Pod){apartFrom("y")}, "n", "n", "n"},
	} {
		t.Run(name, func(t *testing.T) {
			for when, want := range map[string]string{"waits": test.waits, "gone": test.gone, "bound": test.bound} {
				f := newPreempting(t)
				f.node("n", "4", inZone("a"))
				leaves := leaving(pod("leaves", "4", onNode("n")))
				f.running(leaves)
				p := pod("p", "1", append(test.nominee, withPriority(100), labelled("x"),
					func(p *corev1.Pod) { p.Status.NominatedNodeName = "n" })...)
				f.add(p)
				f.want("p:-")
				test.before(f)
				other := pod("other", "0", test.other...)
				f.add(other)
				f.tries()
				switch when {
				case "gone":
					f.RemovePod(p)
				case "bound":
					f.RemovePod(leaves)
					f.wait(time.Minute)
					f.tries()
				}
				f.wait(time.Minute)
				f.tries()
				got, _ := f.State().PodNode(other.UID)
				if got == "" {
					got = "-"
				}
				if got != want {
					t.Errorf("when p %s the other is on %s, want %s", when, got, want)
				}
			}
		})
	}
}

// The volumes of a nominated Pod take a place, and a Pod that shares one of them needs that place itself.
func TestNomineesHoldVolumes(t *testing.T) {
	f := newPreempting(t)
	f.node("n", "2")
	f.SetVolumeLimits(taking("n", 0))
	f.having([]string{"a", "b"})
	leaves := leaving(pod("leaves", "2", onNode("n")))
	f.running(leaves)
	f.add(pod("p", "1", claiming("a"), withPriority(100), func(p *corev1.Pod) { p.Status.NominatedNodeName = "n" }))
	f.want("p:-")
	f.add(pod("other", "0", claiming("b")), pod("shares", "0", claiming("a")))
	f.want("other:- shares:-")
	f.running(pod("holder", "0", claiming("a"), onNode("n")))
	f.wait(time.Minute)
	f.want("p:- shares:n") // the volume is there by now; there is no room for the other yet
}

// A nominated Pod that changes keeps away only the Pods that the changed one keeps away.
func TestANomineeChanges(t *testing.T) {
	nominee := func(change func(*corev1.Pod)) *corev1.Pod {
		return pod("p", "1", change, withPriority(100),
			func(p *corev1.Pod) { p.Status.NominatedNodeName = "n" })
	}
	for name, test := range map[string]struct {
		before, after, other func(*corev1.Pod)
		tried                string
	}{
		"its labels":         {labelled("x"), labelled("y"), apartFrom("x"), "other:n"},
		"what it asks apart": {apartFrom("x"), apartFrom("y"), labelled("x"), "p:- other:n"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newPreempting(t)
			f.node("n", "4", inZone("a"))
			f.node("far", "4", inZone("b"), cordoned)
			f.running(leaving(pod("leaves", "4", onNode("n"))), pod("carries", "0", onNode("far"), test.before))
			f.add(nominee(test.before), pod("other", "0", test.other))
			f.want("p:- other:-")
			f.wait(time.Minute)
			f.want("")
			f.add(nominee(test.after))
			f.want(test.tried)
		})
	}
}
