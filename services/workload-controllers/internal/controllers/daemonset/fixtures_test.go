package daemonset

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"keelson.dev/services/workload-controllers/internal/controllerrevision"
)

var now = time.Unix(1_700_000_000, 0)

// newSet is a DaemonSet "agent" of image agent:2 with the defaults of the API.
func newSet(changes ...func(*appsv1.DaemonSet)) *appsv1.DaemonSet {
	limit := int32(10)
	set := &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "agent", UID: "agent-uid", Generation: 3,
			Annotations: map[string]string{appsv1.DeprecatedTemplateGeneration: "2"}},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "agent"}},
			Template: newTemplate("agent:2"), RevisionHistoryLimit: &limit,
		},
	}
	rolling("0", "1")(set)
	for _, change := range changes {
		change(set)
	}
	return set
}

func newTemplate(image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "agent"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "agent", Image: image}}},
	}
}

func rolling(surge, unavailable string) func(*appsv1.DaemonSet) {
	return func(set *appsv1.DaemonSet) {
		s, u := intstr.Parse(surge), intstr.Parse(unavailable)
		set.Spec.UpdateStrategy = appsv1.DaemonSetUpdateStrategy{
			Type:          appsv1.RollingUpdateDaemonSetStrategyType,
			RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxSurge: &s, MaxUnavailable: &u},
		}
	}
}

func onDelete(set *appsv1.DaemonSet) {
	set.Spec.UpdateStrategy = appsv1.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType}
}

func minReady(seconds int32) func(*appsv1.DaemonSet) {
	return func(set *appsv1.DaemonSet) { set.Spec.MinReadySeconds = seconds }
}

func newNode(name string, taints ...corev1.Taint) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		corev1.LabelHostname: name}}, Spec: corev1.NodeSpec{Taints: taints}}
}

// revisionOf is a revision of the DaemonSet as an earlier pass made it.
func revisionOf(image string, number int64) *appsv1.ControllerRevision {
	template := newTemplate(image)
	r := controllerrevision.Decide(controllerrevision.In{Owner: owner(newSet()), Template: &template}).Create
	r.Revision, r.UID, r.ResourceVersion = number, types.UID(image), "1"
	return r
}

func hashOf(image string) string { return revisionOf(image, 1).Labels["controller-revision-hash"] }

// newPod is a Pod that runs on the node and has been ready for a minute.
func newPod(name, node, image string, changes ...func(*corev1.Pod)) *corev1.Pod {
	yes := true
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, UID: types.UID(name),
			CreationTimestamp: metav1.NewTime(now.Add(-time.Hour)),
			Labels:            map[string]string{"app": "agent", "controller-revision-hash": hashOf(image)},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent",
				UID: "agent-uid", Controller: &yes}},
		},
		Spec: corev1.PodSpec{NodeName: node},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady,
			Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(-time.Minute))}}},
	}
	for _, change := range changes {
		change(pod)
	}
	return pod
}

func unready(pod *corev1.Pod) { pod.Status.Conditions[0].Status = corev1.ConditionFalse }

func leaving(pod *corev1.Pod) { pod.DeletionTimestamp = &metav1.Time{Time: now} }

func younger(pod *corev1.Pod) { pod.CreationTimestamp = metav1.NewTime(now.Add(-time.Minute)) }

// readyFor makes the time that a Pod has been ready.
func readyFor(d time.Duration) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Status.Conditions[0].LastTransitionTime = metav1.NewTime(now.Add(-d)) }
}

func ended(phase corev1.PodPhase) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Status.Phase, pod.Status.Conditions = phase, nil }
}

// unbound takes a Pod off its node, for which it stays meant.
func unbound(pod *corev1.Pod) {
	pod.Spec = ForNode(&corev1.Pod{}, pod.Spec.NodeName).Spec
	pod.Status = corev1.PodStatus{Phase: corev1.PodPending}
}

// inputOf is a DaemonSet with both revisions of its history on nodes n1, n2 ... by their verdicts.
func inputOf(set *appsv1.DaemonSet, verdicts []verdict, pods ...*corev1.Pod) Input {
	byName := map[string]verdict{}
	for i, v := range verdicts {
		if v != unfit {
			byName[fmt.Sprint("n", i+1)] = v
		}
	}
	return Input{
		Now: now, DaemonSet: set, Places: newPlaces(byName), Pods: pods,
		Revisions: []*appsv1.ControllerRevision{revisionOf("agent:1", 1), revisionOf("agent:2", 2)},
	}
}

func alike(v verdict, n int) []verdict { return slices.Repeat([]verdict{v}, n) }

// text shows what a plan does to Pods, for example "+n1 -b Outdated".
func text(plan Plan) string {
	var effects []string
	for _, node := range plan.Create {
		effects = append(effects, "+"+node)
	}
	var deletions []string
	for _, d := range plan.Delete {
		deletions = append(deletions, "-"+d.Pod.Name+" "+d.Reason.String())
	}
	slices.Sort(deletions)
	return strings.Join(append(effects, deletions...), ", ")
}

// decide decides twice, over Pods in this and in the opposite order, and expects the same of both and the input as it
// was.
func decide(t *testing.T, in Input) Plan {
	t.Helper()
	before, places := snapshot(in), slices.Clone(in.Places.list)
	plan := Decide(in)
	again := in
	again.Pods = slices.Clone(in.Pods)
	slices.Reverse(again.Pods)
	other := Decide(again)
	if text(plan) != text(other) || !reflect.DeepEqual(plan.Status, other.Status) || !plan.Wake.Equal(other.Wake) {
		t.Errorf("the order of the Pods makes a difference: %s, %s", text(plan), text(other))
	}
	if !reflect.DeepEqual(before, snapshot(in)) || !slices.Equal(places, in.Places.list) {
		t.Error("the input changed")
	}
	return plan
}

func snapshot(in Input) []any {
	all := []any{in.DaemonSet.DeepCopy(), len(in.Failures)}
	for _, r := range in.Revisions {
		all = append(all, r.DeepCopy())
	}
	for _, pod := range slices.Concat(in.Pods, in.Orphans, in.Unmatched) {
		all = append(all, pod.DeepCopy())
	}
	return all
}
