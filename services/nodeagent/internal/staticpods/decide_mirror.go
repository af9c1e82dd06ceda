package staticpods

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/podview"
)

// showing is what exists under one name.
type showing struct {
	// Static is the Pod that the node runs, with its status; nil if it runs none.
	Static *corev1.Pod
	// Mirror is the mirror in the API; nil if it has none.
	Mirror *corev1.Pod
	// Owner is the UID of the Node; empty before it is registered.
	Owner types.UID
}

// mirroring is what is to be done. Create follows when the API has confirmed Delete.
type mirroring struct {
	Delete, Create *corev1.Pod
}

// decideMirror compares a static Pod with its mirror. It deletes a mirror that is terminating and creates it again,
// as it does for one that shows another content, has another owner, or has ended although the static Pod has not:
// no status can undo that.
func decideMirror(in showing) mirroring {
	switch {
	case in.Owner == "":
		return mirroring{}
	case in.Mirror == nil && (in.Static == nil || podview.IsTerminating(in.Static)):
		return mirroring{}
	case in.Mirror == nil:
		return mirroring{Create: mirrorOf(in.Static, in.Owner)}
	case in.Static == nil || podview.IsTerminating(in.Mirror) || !shows(in.Mirror, in.Static, in.Owner),
		podview.IsTerminal(in.Mirror) && !podview.IsTerminal(in.Static):
		return mirroring{Delete: in.Mirror}
	}
	return mirroring{}
}

// mirrorOf returns the mirror of a static Pod, owned by the Node with the UID and deleted with it.
func mirrorOf(static *corev1.Pod, owner types.UID) *corev1.Pod {
	annotations := map[string]string{corev1.MirrorPodAnnotationKey: string(static.UID)}
	for key, value := range static.Annotations {
		annotations[key] = value
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: static.Name, Namespace: static.Namespace, Labels: static.Labels, Annotations: annotations,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: static.Spec.NodeName,
				UID: owner, Controller: ptr.To(true)}},
		},
		Spec: *static.Spec.DeepCopy(),
	}
}

// shows reports whether the mirror is the static Pod's on the Node with the UID.
func shows(mirror, static *corev1.Pod, owner types.UID) bool {
	return mirror.Annotations[corev1.MirrorPodAnnotationKey] == string(static.UID) &&
		len(mirror.OwnerReferences) == 1 && mirror.OwnerReferences[0].UID == owner
}

// mirrorStatus returns the status of a mirror: the static Pod's, with the conditions that other writers than the
// node have set on the mirror.
func mirrorStatus(static *corev1.PodStatus, mirror *corev1.Pod) corev1.PodStatus {
	out := *static.DeepCopy()
	out.ObservedGeneration, out.QOSClass = mirror.Generation, mirror.Status.QOSClass
	own := map[corev1.PodConditionType]bool{}
	for i := range out.Conditions {
		out.Conditions[i].ObservedGeneration = mirror.Generation
		own[out.Conditions[i].Type] = true
	}
	for _, condition := range mirror.Status.Conditions {
		if !own[condition.Type] {
			out.Conditions = append(out.Conditions, condition)
		}
	}
	return out
}
