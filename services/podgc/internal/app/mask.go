package app

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/kit/fieldmask"
)

// decoded are the fields that trimming keeps, so that the others are not decoded.
func decoded() []fieldmask.Rule {
	meta := []string{"namespace", "name", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp",
		"deletionGracePeriodSeconds", "ownerReferences", "finalizers"}
	return []fieldmask.Rule{
		{Object: &corev1.Pod{}, Only: map[string][]string{
			"metadata":                            meta,
			"spec":                                {"nodeName", "tolerations", "volumes", "schedulingGroup"},
			"spec.volumes":                        {"name", "volumeSource"},
			"spec.volumes.volumeSource":           {"persistentVolumeClaim", "ephemeral"},
			"spec.volumes.volumeSource.ephemeral": {},
			"status":                              {"phase", "conditions"},
		}, Resource: "pods", Shared: map[string][]string{
			"metadata": {"namespace", "ownerReferences", "finalizers"}, "spec": {"tolerations"},
		}},
		{Object: &corev1.Node{}, Only: map[string][]string{
			"metadata": append(meta, "labels"), "spec": {"taints", "unschedulable"}, "status": {"conditions"},
		}},
		{Object: &batchv1.Job{}, Only: map[string][]string{
			"metadata": meta, "spec": {"ttlSecondsAfterFinished"}, "status": {"conditions"},
		}},
		// What owners, claims, volumes, their classes and PodGroups are known by.
		{Object: &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{
			APIVersion: metav1.SchemeGroupVersion.String(), Kind: "PartialObjectMetadata",
		}}, Only: map[string][]string{"metadata": meta}},
	}
}
