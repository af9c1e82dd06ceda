package feed

import (
	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/fieldmask"
)

// Decoded are the fields that trimming reads, so that the decoder skips the others. What is alike in Pods of one
// template and in nodes of one size is decoded once. Fields that Pods often have of their own, such as volumes or the
// affinity of a DaemonSet's, are not among that.
func Decoded() []fieldmask.Rule {
	meta := []string{"namespace", "name", "uid", "resourceVersion", "generation", "creationTimestamp",
		"deletionTimestamp", "deletionGracePeriodSeconds", "labels"}
	container := []string{"name", "image", "restartPolicy", "ports", "resources"}
	status := []string{"name", "resources", "allocatedResources"}
	return []fieldmask.Rule{
		{Object: &corev1.Pod{}, Only: map[string][]string{
			"metadata": append([]string{"ownerReferences"}, meta...),
			"spec": {"nodeName", "schedulerName", "priority", "overhead", "resources", "containers", "initContainers",
				"volumes", "schedulingGates", "resourceClaims", "nodeSelector", "affinity", "tolerations",
				"topologySpreadConstraints", "preemptionPolicy", "schedulingGroup"},
			"spec.containers":                     container,
			"spec.containers.resources":           {"requests"},
			"spec.initContainers":                 container,
			"spec.initContainers.resources":       {"requests"},
			"spec.volumes":                        {"name", "volumeSource"},
			"spec.volumes.volumeSource":           {"persistentVolumeClaim", "ephemeral", "image"},
			"spec.volumes.volumeSource.ephemeral": {},
			"spec.volumes.volumeSource.image":     {"reference"},
			"status": {"phase", "startTime", "nominatedNodeName", "conditions", "containerStatuses",
				"initContainerStatuses", "resources", "allocatedResources", "resourceClaimStatuses"},
			"status.containerStatuses":     status,
			"status.initContainerStatuses": status,
		}, Resource: "pods", Selector: live, Shared: map[string][]string{
			"metadata": {"namespace", "labels", "ownerReferences"},
			"spec": {"schedulerName", "priority", "overhead", "resources", "containers", "initContainers",
				"nodeSelector", "tolerations", "topologySpreadConstraints", "preemptionPolicy"},
		}},
		{Object: &corev1.Node{}, Only: map[string][]string{
			"metadata": meta, "spec": {"taints", "unschedulable"}, "status": {"allocatable", "images"},
		}, Resource: "nodes", Shared: map[string][]string{"status": {"allocatable"}}},
	}
}
