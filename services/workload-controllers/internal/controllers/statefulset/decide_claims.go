package statefulset

import (
	"maps"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/kit/podview"
	"keelson.dev/services/workload-controllers/internal/claim"
)

// repair restores the labels and claims of every Pod, and the owners of every claim according to the retention
// policy.
func (w *work) repair() {
	handled := map[string]bool{}
	for _, ordinal := range w.known() {
		pod := w.pods[ordinal]
		if pod != nil && podview.IsActive(pod) {
			w.relabel(ordinal, pod)
		}
		for i := range w.set.Spec.VolumeClaimTemplates {
			handled[claimName(w.set, i, ordinal)] = true
			w.repairClaim(i, ordinal, pod)
		}
	}
	for _, pod := range w.surplus {
		ordinal, _ := ordinalOf(w.set, pod.Name)
		for i := range w.set.Spec.VolumeClaimTemplates {
			name := claimName(w.set, i, ordinal)
			handled[name] = true
			if existing := w.in.Claims[name]; existing != nil {
				w.own(existing, w.surplusOwner(pod)...)
			}
		}
	}
	// Claims of unwanted ordinals lose the set as their owner, but never gain it: they may predate the set.
	for _, name := range slices.Sorted(maps.Keys(w.in.Claims)) {
		if existing := w.in.Claims[name]; !handled[name] && metav1.IsControlledBy(existing, w.set) {
			w.own(existing, w.keptOwner()...)
		}
	}
}

// known returns the wanted ordinals that have a Pod or a claim, in ascending order.
func (w *work) known() []int {
	known := slices.Clone(w.filled)
	for name := range w.in.Claims {
		if ordinal, ok := claimOrdinal(w.set, name); ok && w.isAskedFor(ordinal) {
			known = append(known, ordinal)
		}
	}
	slices.Sort(known)
	return slices.Compact(known)
}

// repairClaim repairs the claim of the template at an index, for a wanted ordinal and its Pod, if any.
func (w *work) repairClaim(index, ordinal int, pod *corev1.Pod) {
	existing := w.in.Claims[claimName(w.set, index, ordinal)]
	switch {
	case existing == nil:
		if pod != nil && podview.IsActive(pod) {
			w.plan.Storage = append(w.plan.Storage, NewClaim{newClaim(w.set, index, ordinal), pod.Name})
		}
	case !w.isOnItsWayOut(existing, pod):
		w.own(existing, w.keptOwner()...)
	}
}

// relabel restores the identity labels of a Pod.
func (w *work) relabel(ordinal int, pod *corev1.Pod) {
	if pod.Labels[appsv1.StatefulSetPodNameLabel] == pod.Name &&
		pod.Labels[appsv1.PodIndexLabel] == strconv.Itoa(ordinal) {
		return
	}
	missing := identity(w.set, ordinal)
	maps.DeleteFunc(missing, func(key, value string) bool { return pod.Labels[key] == value })
	w.plan.Relabel = append(w.plan.Relabel, Relabelling{Pod: pod, Labels: missing})
}

// keptOwner returns the owners of the claims of a wanted ordinal.
func (w *work) keptOwner() []metav1.OwnerReference {
	if whenDeleted, _ := retention(w.set); whenDeleted != appsv1.DeletePersistentVolumeClaimRetentionPolicyType {
		return nil
	}
	return []metav1.OwnerReference{claim.Reference(owner(w.set))}
}

// surplusOwner returns the owners of the claims of a surplus Pod.
func (w *work) surplusOwner(pod *corev1.Pod) []metav1.OwnerReference {
	if _, whenScaled := retention(w.set); whenScaled != appsv1.DeletePersistentVolumeClaimRetentionPolicyType {
		return w.keptOwner()
	}
	yes := true
	return []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID, Controller: &yes}}
}

// own plans that a claim has these owners among the set and its Pods. It keeps other owners, and leaves a claim with
// another controller alone.
func (w *work) own(existing *corev1.PersistentVolumeClaim, owners ...metav1.OwnerReference) {
	var others []metav1.OwnerReference
	for _, reference := range existing.OwnerReferences {
		if reference.UID == w.set.UID || w.isPodReference(reference) {
			continue
		}
		if reference.Controller != nil && *reference.Controller {
			return
		}
		others = append(others, reference)
	}
	if wanted := append(others, owners...); !apiequality.Semantic.DeepEqual(existing.OwnerReferences, wanted) {
		next := existing.DeepCopy()
		next.OwnerReferences = wanted
		w.plan.Owners = append(w.plan.Owners, next)
	}
}

// isOnItsWayOut reports whether a claim of an ordinal will be deleted without further action: it is being deleted,
// or its owner is gone or being deleted. Until then no Pod is created for it. pod is the Pod of the ordinal, or nil.
func (w *work) isOnItsWayOut(existing *corev1.PersistentVolumeClaim, pod *corev1.Pod) bool {
	if existing.DeletionTimestamp != nil {
		return true
	}
	_, whenScaled := retention(w.set)
	for _, reference := range existing.OwnerReferences {
		switch {
		case reference.Kind == kind.Kind && reference.Name == w.set.Name && reference.UID != w.set.UID:
			return true
		case w.isPodReference(reference) && whenScaled == appsv1.DeletePersistentVolumeClaimRetentionPolicyType &&
			(pod == nil || pod.UID != reference.UID || podview.IsTerminating(pod)):
			return true
		}
	}
	return false
}

// isPodReference reports whether a reference is to a Pod of the set.
func (w *work) isPodReference(reference metav1.OwnerReference) bool {
	_, named := ordinalOf(w.set, reference.Name)
	return named && reference.Kind == "Pod" && reference.APIVersion == "v1"
}

// retention returns what happens to claims when the set is deleted, and when it is scaled down.
func retention(set *appsv1.StatefulSet) (
	whenDeleted, whenScaled appsv1.PersistentVolumeClaimRetentionPolicyType,
) {
	if policy := set.Spec.PersistentVolumeClaimRetentionPolicy; policy != nil {
		return policy.WhenDeleted, policy.WhenScaled
	}
	return appsv1.RetainPersistentVolumeClaimRetentionPolicyType, appsv1.RetainPersistentVolumeClaimRetentionPolicyType
}
