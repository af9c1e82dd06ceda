package podfeed

import (
	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/fieldmask"
)

// Decoded are the fields that Trim reads, so that the others are not decoded.
func Decoded() []fieldmask.Rule {
	return []fieldmask.Rule{
		{Object: &corev1.Pod{}, Only: map[string][]string{
			"metadata": {"namespace", "name", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp",
				"deletionGracePeriodSeconds", "labels", "annotations", "ownerReferences", "finalizers"},
			"spec": {"nodeName", "hostname", "subdomain", "containers", "initContainers", "resources", "overhead",
				"volumes", "affinity", "priorityClassName", "activeDeadlineSeconds", "resourceClaims"},
			"spec.containers":           {"name", "ports", "resources", "restartPolicy"},
			"spec.initContainers":       {"name", "ports", "resources", "restartPolicy"},
			"spec.volumes":              {"name", "volumeSource"},
			"spec.volumes.volumeSource": {"ephemeral", "persistentVolumeClaim"},
			"status": {"phase", "startTime", "podIP", "podIPs", "qosClass", "conditions", "resize", "resources",
				"allocatedResources", "containerStatuses", "initContainerStatuses", "resourceClaimStatuses"},
			"status.containerStatuses":     {"name", "restartCount", "state", "resources", "allocatedResources"},
			"status.initContainerStatuses": {"name", "restartCount", "state", "resources", "allocatedResources"},
		}, Resource: "pods", Shared: map[string][]string{
			"metadata": {"namespace", "labels", "annotations", "ownerReferences", "finalizers"},
			"spec": {"subdomain", "containers", "initContainers", "resources", "overhead", "priorityClassName",
				"activeDeadlineSeconds"},
		}},
		{Object: &corev1.Node{}, Only: map[string][]string{
			"metadata": {"name", "uid", "resourceVersion", "labels"}, "spec": {"taints", "podCIDR", "podCIDRs"},
			"status": {"conditions", "volumesInUse", "volumesAttached"},
		}},
	}
}
