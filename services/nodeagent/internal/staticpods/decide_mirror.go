package staticpods

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/podview"
)

// showing is what there is of one name.
type showing struct {
	// Static is the Pod that the node runs, with its status; nil if there is none.
	Static *corev1.Pod
	// Mirror is what the API has; nil if it has nothing.
	Mirror *corev1.Pod
	// Owner is the UID of the Node; empty before it is registered.
	Owner types.UID
}

// mirroring is what is to be done. The second follows when the API says that the first is done.
type mirroring struct {
	Delete, Create *corev1.Pod
}

// decideMirror compares a static Pod with its mirror. One that is being deleted is let go and made again; so is one
// that shows another content, has another owner, or has ended although the static Pod has not: no status can take that
// back.
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

// mirrorOf is the Pod that shows a static Pod of the Node with the UID. It goes when the Node goes.
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

// shows reports whether the mirror is one of the static Pod on the Node with the UID.
func shows(mirror, static *corev1.Pod, owner types.UID) bool {
	return mirror.Annotations[corev1.MirrorPodAnnotationKey] == string(static.UID) &&
		len(mirror.OwnerReferences) == 1 && mirror.OwnerReferences[0].UID == owner
}

// mirrorStatus is the status of a mirror: the static Pod's, with what others than the node have written there.
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
