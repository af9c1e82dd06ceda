package staticpods

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/podview"
)

// TestDecideMirror checks what is done with mirrors. POD-068 POD-069 SET-162
func TestDecideMirror(t *testing.T) {
	static, other := podOf(t, text("web", "1")), podOf(t, text("web", "2"))
	with := func(pod *corev1.Pod, change func(*corev1.Pod)) *corev1.Pod {
		pod = pod.DeepCopy()
		change(pod)
		return pod
	}
	ending := func(p *corev1.Pod) { p.DeletionTimestamp = ptr.To(metav1.NewTime(time.Unix(1, 0))) }
	phase := func(phase corev1.PodPhase) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Status.Phase = phase }
	}
	mirror := mirrorOf(static, "node-uid")
	for _, r := range []struct {
		name           string
		static, mirror *corev1.Pod
		owner          types.UID
		want           string
	}{
		{"POD-068 there is none", static, nil, "node-uid", "create"},
		{"the node is not registered", static, nil, "", ""},
		{"POD-068 it is as it shall be", static, mirror, "node-uid", ""},
		{"POD-069 it is being deleted", static, with(mirror, ending), "node-uid", "delete"},
		{"POD-069 it was edited", static,
			with(mirror, func(p *corev1.Pod) { p.Spec.Containers[0].Image = "other" }), "node-uid", ""},
		{"it is of another content", other, mirror, "node-uid", "delete"},
		{"it is of a Node before this one", static, mirror, "new-uid", "delete"},
		{"it has no owner", static,
			with(mirror, func(p *corev1.Pod) { p.OwnerReferences = nil }), "node-uid", "delete"},
		{"the Pod is gone", nil, mirror, "node-uid", "delete"},
		{"the Pod is ending", with(static, ending), mirror, "node-uid", ""},
		{"the Pod is ending and has none", with(static, ending), nil, "node-uid", ""},
		{"both have ended", with(static, phase(corev1.PodSucceeded)),
			with(mirror, phase(corev1.PodSucceeded)), "node-uid", ""},
		{"it has ended, the Pod runs anew", with(static, phase(corev1.PodRunning)),
			with(mirror, phase(corev1.PodFailed)), "node-uid", "delete"},
		{"neither is there", nil, nil, "node-uid", ""},
	} {
		t.Run(r.name, func(t *testing.T) {
			plan := decideMirror(showing{Static: r.static, Mirror: r.mirror, Owner: r.owner})
			got := ""
			switch {
			case plan.Create != nil:
				got = "create"
			case plan.Delete != nil:
				got = "delete"
			}
			if got != r.want {
				t.Errorf("got %q, want %q", got, r.want)
			}
		})
	}
}

// The mirror has the form that the API accepts from a node, and shows the status with what other clients wrote
// there.
func TestMirrorShows(t *testing.T) {
	static := podOf(t, text("web", "1"))
	mirror := mirrorOf(static, "node-uid")
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: node, UID: "node-uid",
		Controller: ptr.To(true)}
	if mirror.UID != "" || mirror.Annotations["kubernetes.io/config.mirror"] != string(static.UID) ||
		len(mirror.OwnerReferences) != 1 || mirror.OwnerReferences[0].String() != owner.String() ||
		!podview.IsMirror(mirror) ||
		podview.IsMirror(static) {
		t.Errorf("the mirror is %+v", mirror.ObjectMeta)
	}
	mirror.Generation = 4
	mirror.Status = corev1.PodStatus{QOSClass: corev1.PodQOSBurstable, Conditions: []corev1.PodCondition{
		{Type: corev1.PodReady, Status: corev1.ConditionFalse}, {Type: "Foreign", Status: corev1.ConditionTrue}}}
	got := mirrorStatus(&corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
		{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}, mirror)
	if got.ObservedGeneration != 4 || got.QOSClass != corev1.PodQOSBurstable || got.Phase != corev1.PodRunning ||
		!slices.Equal(got.Conditions, []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionTrue, ObservedGeneration: 4},
			{Type: "Foreign", Status: corev1.ConditionTrue}}) {
		t.Errorf("the status is %+v", got)
	}
}
