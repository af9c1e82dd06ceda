package protection

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/podview"
)

// Input is all that a decision depends on. Decide changes none of it.
type Input struct {
	Object metav1.Object
	// Finalizer is what protects objects of its kind.
	Finalizer string
	// User is the user of the object, which must therefore stay; empty if it is unused.
	User string
}

// Plan is the effect of one pass.
type Plan struct {
	// Finalizers are what the object must have; Change says that it has others.
	Finalizers []string
	Change     bool
}

// Decide protects an object that stays, and lets go of one that is to go and that nothing uses.
func Decide(in Input) Plan {
	have := in.Object.GetFinalizers()
	switch {
	case !NeedsWork(in.Object, in.Finalizer) || in.User != "" && isGoing(in.Object):
		return Plan{}
	case isGoing(in.Object):
		return Plan{Change: true, Finalizers: slices.DeleteFunc(slices.Clone(have),
			func(finalizer string) bool { return finalizer == in.Finalizer })}
	}
	return Plan{Change: true, Finalizers: append(slices.Clone(have), in.Finalizer)}
}

// NeedsWork reports whether an object stays and is not protected, or goes and is.
func NeedsWork(object metav1.Object, finalizer string) bool {
	return slices.Contains(object.GetFinalizers(), finalizer) == isGoing(object)
}

func isGoing(object metav1.Object) bool { return object.GetDeletionTimestamp() != nil }

// usesClaim reports whether a Pod has a claim in its hands: it has a node and has not ended. One without a node gets
// none while its claim is on its way out.
func usesClaim(pod *corev1.Pod, claim metav1.Object) bool {
	if pod.Namespace != claim.GetNamespace() || pod.Spec.NodeName == "" || podview.IsTerminal(pod) {
		return false
	}
	return slices.Contains(podview.ClaimNames(pod), claim.GetName())
}

// usesGroup reports whether a Pod is of a PodGroup and has not ended, with a node or without.
func usesGroup(pod *corev1.Pod, group metav1.Object) bool {
	return pod.Namespace == group.GetNamespace() && !podview.IsTerminal(pod) &&
		slices.Contains(groupOf(pod), group.GetName())
}

// groupOf is the name of the PodGroup that a Pod names, if it names one.
func groupOf(pod *corev1.Pod) []string {
	if group := pod.Spec.SchedulingGroup; group != nil && group.PodGroupName != nil {
		return []string{*group.PodGroupName}
	}
	return nil
}

// KeepClaims keeps of a Pod's volumes what podview.ClaimNames reads.
func KeepClaims(volumes []corev1.Volume) []corev1.Volume {
	var kept []corev1.Volume
	for i := range volumes {
		volume := corev1.Volume{Name: volumes[i].Name}
		switch source := &volumes[i].VolumeSource; {
		case source.PersistentVolumeClaim != nil:
			volume.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{
				ClaimName: source.PersistentVolumeClaim.ClaimName}
		case source.Ephemeral != nil:
			volume.Ephemeral = &corev1.EphemeralVolumeSource{}
		default:
			continue
		}
		kept = append(kept, volume)
	}
	return kept
}

// usesVolume reports whether a claim has the volume: the volume says so itself, or the claim does, of which holder
// is the UID of the one that the volume is for.
func usesVolume(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim, holder types.UID) bool {
	return volume.Status.Phase == corev1.VolumeBound ||
		claim != nil && claim.UID == holder && claim.Spec.VolumeName == volume.Name
}

// usesClass reports whether a claim has the class of attributes, asks for it or is on its way to it.
func usesClass(claim *corev1.PersistentVolumeClaim, class string) bool {
	modify := claim.Status.ModifyVolumeStatus
	return ptr.Deref(claim.Spec.VolumeAttributesClassName, "") == class ||
		ptr.Deref(claim.Status.CurrentVolumeAttributesClassName, "") == class ||
		modify != nil && modify.TargetVolumeAttributesClassName == class
}

// hasClass reports whether a volume has the class of attributes.
func hasClass(volume *corev1.PersistentVolume, class string) bool {
	return ptr.Deref(volume.Spec.VolumeAttributesClassName, "") == class
}
