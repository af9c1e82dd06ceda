package statefulset

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/services/workload-controllers/internal/claim"
	"keelson.dev/services/workload-controllers/internal/controllerrevision"
)

// identity returns the labels that identify a Pod of the set.
func identity(set *appsv1.StatefulSet, ordinal int) map[string]string {
	return map[string]string{
		appsv1.StatefulSetPodNameLabel: podName(set, ordinal),
		appsv1.PodIndexLabel:           strconv.Itoa(ordinal),
	}
}

// newPod returns the Pod of an ordinal, made from a revision.
func newPod(set *appsv1.StatefulSet, ordinal int, revision string, template *corev1.PodTemplateSpec) *corev1.Pod {
	labels := identity(set, ordinal)
	for key, value := range template.Labels {
		if _, own := labels[key]; !own {
			labels[key] = value
		}
	}
	labels[controllerrevision.HashLabel] = revision
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: set.Namespace, Name: podName(set, ordinal), Labels: labels,
			Annotations: template.Annotations, Finalizers: template.Finalizers,
			OwnerReferences: []metav1.OwnerReference{claim.Reference(owner(set))},
		},
		Spec: template.Spec,
	}
	pod.Spec.Hostname, pod.Spec.Subdomain = pod.Name, set.Spec.ServiceName
	pod.Spec.Volumes = volumes(set, ordinal, template.Spec.Volumes)
	return pod
}

// volumes returns the template's volumes, replaced by the set's claims where the names are equal.
func volumes(set *appsv1.StatefulSet, ordinal int, template []corev1.Volume) []corev1.Volume {
	var all []corev1.Volume
	for i := range set.Spec.VolumeClaimTemplates {
		all = append(all, corev1.Volume{Name: set.Spec.VolumeClaimTemplates[i].Name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claimName(set, i, ordinal)}}})
	}
	for i := range template {
		if !slices.ContainsFunc(all, func(v corev1.Volume) bool { return v.Name == template[i].Name }) {
			all = append(all, template[i])
		}
	}
	return all
}

// claimName returns the name of the claim of the template at an index.
func claimName(set *appsv1.StatefulSet, index, ordinal int) string {
	return set.Spec.VolumeClaimTemplates[index].Name + "-" + podName(set, ordinal)
}

// newClaim returns the claim of the template at an index.
func newClaim(set *appsv1.StatefulSet, index, ordinal int) *corev1.PersistentVolumeClaim {
	template := &set.Spec.VolumeClaimTemplates[index]
	labels := map[string]string{}
	maps.Copy(labels, template.Labels)
	maps.Copy(labels, set.Spec.Selector.MatchLabels)
	made := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: set.Namespace, Name: claimName(set, index, ordinal), Labels: labels,
			Annotations: template.Annotations, Finalizers: template.Finalizers,
		},
		Spec: template.Spec,
	}
	if whenDeleted, _ := retention(set); whenDeleted == appsv1.DeletePersistentVolumeClaimRetentionPolicyType {
		made.OwnerReferences = []metav1.OwnerReference{claim.Reference(owner(set))}
	}
	return made
}

// claimOrdinal returns the ordinal in a claim's name; false if no claim of the set can have the name.
func claimOrdinal(set *appsv1.StatefulSet, name string) (int, bool) {
	for i := range set.Spec.VolumeClaimTemplates {
		if pod, ok := strings.CutPrefix(name, set.Spec.VolumeClaimTemplates[i].Name+"-"); ok {
			if ordinal, ok := ordinalOf(set, pod); ok {
				return ordinal, true
			}
		}
	}
	return 0, false
}

// claimStem returns the name of a claim without the ordinal: all claims of one template of a set share it.
func claimStem(name string) string { return name[:max(0, strings.LastIndexByte(name, '-'))] }

// labelPatch returns the strategic merge patch that gives a Pod its labels; it names the Pod's UID.
func labelPatch(r Relabelling) []byte {
	// Encoding strings and maps cannot fail.
	patch, _ := json.Marshal(map[string]any{"metadata": map[string]any{"uid": r.Pod.UID, "labels": r.Labels}})
	return patch
}
