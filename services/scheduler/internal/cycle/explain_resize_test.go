package cycle_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// resizing is a Pod of node n that has so much CPU and asks for another amount.
func resizing(name, has, asks, answer string) *corev1.Pod {
	p := pod(name, asks, onNode("n"))
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: p.Spec.Containers[0].Name,
		AllocatedResources: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(has)},
		Resources: &corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse(has)}}}}
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodResizePending, Status: corev1.ConditionTrue,
		Reason: answer, Message: "no", LastTransitionTime: metav1.NewTime(start.Add(time.Second))}}
	return p
}

// What is said of p on a node of 4 CPUs, which has 1 of them and asks for more.
func TestExplainResize(t *testing.T) {
	deferred := resizing("p", "1", "3", corev1.PodReasonDeferred)
	for name, test := range map[string]struct {
		happens func(*fixture)
		says    string
		facts   []string
	}{
		"deferred": {func(f *fixture) {
			f.add(deferred, pod("small", "500m", onNode("n")), pod("large", "1500m", onNode("n")))
		}, "has node n, whose answer to its resize is Deferred: no", []string{
			"Resize: cpu: it has 1 and asks for 3; node n offers 4, of which others have 2: 1 is missing",
			"Preemption: nobody's room is taken for a resize",
			"WouldFit: once other Pods of node n end or shrink: any of default/large (priority 0) would do",
			"WouldFit: 1 less cpu than it asks for: node n has that for it"}},
		"deferred, one has just enough": {func(f *fixture) {
			f.add(deferred, pod("enough", "1", onNode("n"), withPriority(7)), pod("less", "999m", onNode("n")),
				pod("least", "1m", onNode("n")))
		}, "", []string{
			"Resize: cpu: it has 1 and asks for 3; node n offers 4, of which others have 2: 1 is missing",
			"Preemption: nobody's room is taken for a resize",
			"WouldFit: once other Pods of node n end or shrink: any of default/enough (priority 7) would do",
			"WouldFit: 1 less cpu than it asks for: node n has that for it"}},
		"deferred, two have enough": {func(f *fixture) {
			f.add(deferred, pod("a", "1", onNode("n"), withPriority(7)), pod("b", "1", onNode("n")))
		}, "", []string{
			"Resize: cpu: it has 1 and asks for 3; node n offers 4, of which others have 2: 1 is missing",
			"Preemption: nobody's room is taken for a resize",
			"WouldFit: once other Pods of node n end or shrink: any of default/b (priority 0), default/a " +
				"(priority 7) would do",
			"WouldFit: 1 less cpu than it asks for: node n has that for it"}},
		"deferred, none has enough": {func(f *fixture) {
			f.add(deferred, pod("a", "900m", onNode("n")), pod("b", "900m", onNode("n")), pod("c", "900m", onNode("n")))
		}, "", []string{
			"Resize: cpu: it has 1 and asks for 3; node n offers 4, of which others have 2700m: 1700m is missing",
			"Preemption: nobody's room is taken for a resize",
			"WouldFit: once other Pods of node n end or shrink: no single one of them has enough",
			"WouldFit: 1700m less cpu than it asks for: node n has that for it"}},
		"deferred beside another, which counts with what it has": {func(f *fixture) {
			f.add(deferred, resizing("q", "1", "4", corev1.PodReasonDeferred))
		}, "", []string{
			"Resize: cpu: it has 1 and asks for 3; node n offers 4, of which others have 1: which is enough",
			"Preemption: nobody's room is taken for a resize",
			"WouldFit: node n has room for it by now, and is yet to say so"}},
		"infeasible": {func(f *fixture) {
			f.add(resizing("p", "1", "5", corev1.PodReasonInfeasible), pod("q", "1", onNode("n")))
		}, "has node n, whose answer to its resize is Infeasible: no", []string{
			"Resize: cpu: it has 1 and asks for 5; node n offers 4, of which others have 1: 2 is missing",
			"Preemption: nobody's room is taken for a resize",
			"WouldFit: never on node n, whoever leaves it: a Pod made anew may have this size on another",
			"WouldFit: 2 less cpu than it asks for: node n has that for it"}},
		"infeasible for another reason": {func(f *fixture) {
			f.add(resizing("p", "1", "4", corev1.PodReasonInfeasible))
		}, "", []string{
			"Resize: cpu: it has 1 and asks for 4; node n offers 4, of which others have 0: which is enough",
			"Preemption: nobody's room is taken for a resize"}},
		"the node is gone": {func(f *fixture) {
			f.add(deferred)
			f.RemoveNode("n")
		}, "", []string{"Resize: node n is gone"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.node("n", "4")
			test.happens(f)
			e, ok := f.Explain(types.NamespacedName{Namespace: "default", Name: "p"})
			if !ok || test.says != "" && e.Summary != test.says {
				t.Errorf("says %v %q, want %q", ok, e.Summary, test.says)
			}
			var facts []string
			for _, fact := range e.Facts {
				facts = append(facts, fact.Reason+": "+fact.Message)
				if !fact.Time.Equal(start.Add(time.Second)) {
					t.Errorf("%s is of %s", fact.Reason, fact.Time)
				}
			}
			if !slices.Equal(facts, test.facts) {
				t.Errorf("says\n%s\nwant\n%s", strings.Join(facts, "\n"), strings.Join(test.facts, "\n"))
			}
		})
	}
}

// Nothing is said any more of a resize that was granted, or of a Pod that is gone.
func TestExplainNoResize(t *testing.T) {
	name := types.NamespacedName{Namespace: "default", Name: "p"}
	pending := resizing("p", "1", "3", corev1.PodReasonDeferred)
	granted := pending.DeepCopy()
	granted.Status.Conditions = nil
	ended := pending.DeepCopy()
	ended.Status.Phase = corev1.PodSucceeded
	for what, end := range map[string]func(*fixture){
		"granted": func(f *fixture) { f.add(granted) }, "ended": func(f *fixture) { f.add(ended) },
		"gone": func(f *fixture) { f.RemovePod(pending) },
	} {
		f := newFixture(t)
		f.node("n", "4")
		f.add(pending)
		if _, ok := f.Explain(name); !ok {
			t.Fatal("nothing is said of a resize that is put off")
		}
		end(f)
		if e, ok := f.Explain(name); ok {
			t.Errorf("%s: says %q", what, e.Summary)
		}
	}
}
