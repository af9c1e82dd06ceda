package ephemeralvolume

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/ephemeral"

	"keelson.dev/kit/events"
	"keelson.dev/kit/podview"
)

// Input is all that a decision depends on. Decide changes none of it.
type Input struct {
	Pod *corev1.Pod
	// Claims are the existing claims with the names that the Pod's ephemeral volumes need.
	Claims map[string]*corev1.PersistentVolumeClaim
}

// Plan names every effect of one pass.
type Plan struct {
	// Create are the claims to create.
	Create []NewClaim
	// Foreign are other owners' claims with the names of the Pod's claims, Leaving the Pod's claims that are being
	// deleted.
	Foreign, Leaving []*corev1.PersistentVolumeClaim
	Events           []events.Event
}

// NewClaim is a claim and its volume.
type NewClaim struct {
	Volume string
	Claim  *corev1.PersistentVolumeClaim
}

// Decide plans the claims that the Pod lacks. A claim that the Pod does not own is never used.
func Decide(in Input) Plan {
	var plan Plan
	for i := range in.Pod.Spec.Volumes {
		volume := &in.Pod.Spec.Volumes[i]
		if !hasTemplate(volume) {
			continue
		}
		switch existing := in.Claims[ephemeral.VolumeClaimName(in.Pod, volume)]; {
		case existing == nil:
			plan.Create = append(plan.Create, NewClaim{volume.Name, newClaim(in.Pod, volume)})
		case !metav1.IsControlledBy(existing, in.Pod):
			plan.Foreign = append(plan.Foreign, existing)
			plan.Events = append(plan.Events, foreign(in.Pod, volume.Name, existing))
		case existing.DeletionTimestamp != nil:
			plan.Leaving = append(plan.Leaving, existing)
		}
	}
	return plan
}

// needsClaims reports whether a decision about the Pod is needed: a Pod that has ended or is being deleted gets no
// claims.
func needsClaims(pod *corev1.Pod) bool { return podview.IsActive(pod) && len(claimNames(pod)) > 0 }

// newClaim returns the claim of a volume. The Pod owns it, and it is deleted with the Pod.
func newClaim(pod *corev1.Pod, volume *corev1.Volume) *corev1.PersistentVolumeClaim {
	template := volume.Ephemeral.VolumeClaimTemplate.DeepCopy()
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: ephemeral.VolumeClaimName(pod, volume), Labels: template.Labels,
			Annotations:     template.Annotations,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(pod, podKind)},
		},
		Spec: template.Spec,
	}
}

var podKind = corev1.SchemeGroupVersion.WithKind("Pod")

func hasTemplate(volume *corev1.Volume) bool {
	return volume.Ephemeral != nil && volume.Ephemeral.VolumeClaimTemplate != nil
}

// claimNames returns the names of the claims of a Pod's ephemeral volumes.
func claimNames(pod *corev1.Pod) []string {
	var names []string
	for i := range pod.Spec.Volumes {
		if volume := &pod.Spec.Volumes[i]; hasTemplate(volume) {
			names = append(names, ephemeral.VolumeClaimName(pod, volume))
		}
	}
	return names
}
