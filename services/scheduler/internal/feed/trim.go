package feed

import (
	"reflect"
	"slices"
	"unique"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"keelson.dev/services/scheduler/internal/devices"
	"keelson.dev/services/scheduler/internal/groups"
)

// Trimming works on the object itself: it has just been decoded, and no other code has it. What is inside may be shared
// with other objects and is never changed.

// Trim reduces an object, in place, to what the scheduler reads of it, as the Feed does. An object of a kind that the
// Feed does not watch stays as it is.
func Trim(o runtime.Object) error {
	k := kindOf(o)
	if k == nil {
		return nil
	}
	_, err := k.trim(o)
	return err
}

// trimNode keeps what the columns hold of a node.
func trimNode(object any) (any, error) {
	n, ok := object.(*corev1.Node)
	if !ok {
		return object, nil // a tombstone
	}
	trimMeta(&n.ObjectMeta)
	n.Spec = corev1.NodeSpec{Taints: n.Spec.Taints, Unschedulable: n.Spec.Unschedulable}
	n.Status = corev1.NodeStatus{Allocatable: n.Status.Allocatable, Images: trimImages(n.Status.Images)}
	return n, nil
}

// trimImages keeps each name once for all nodes that have the image.
func trimImages(images []corev1.ContainerImage) []corev1.ContainerImage {
	for i := range images {
		for j, name := range images[i].Names {
			images[i].Names[j] = unique.Make(name).Value()
		}
	}
	return images
}

// trimPod keeps what rules read of a Pod, and of a bound Pod only what it takes of its node and what it asks of other
// Pods.
func trimPod(object any) (any, error) {
	p, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	controller, owners := groups.ControllerOf(p), p.OwnerReferences
	trimMeta(&p.ObjectMeta)
	waits := p.Spec.NodeName == ""
	switch {
	case controller == nil || !waits:
	case len(owners) == 1:
		p.OwnerReferences = owners
	default:
		p.OwnerReferences = []metav1.OwnerReference{*controller}
	}
	spec, status := p.Spec, p.Status
	p.Spec = corev1.PodSpec{
		NodeName: spec.NodeName, SchedulerName: spec.SchedulerName, Priority: spec.Priority, Overhead: spec.Overhead,
		Resources: spec.Resources, Containers: trimContainers(spec.Containers),
		InitContainers: trimContainers(spec.InitContainers),
		Volumes:        trimVolumes(spec.Volumes, waits), SchedulingGroup: spec.SchedulingGroup,
	}
	p.Status = corev1.PodStatus{Phase: status.Phase}
	if !waits {
		p.Status.ContainerStatuses = trimStatuses(status.ContainerStatuses)
		p.Status.InitContainerStatuses = trimStatuses(status.InitContainerStatuses)
		p.Status.Resources, p.Status.AllocatedResources = status.Resources, status.AllocatedResources
		p.Status.Conditions = pick(status.Conditions, corev1.PodResizePending, corev1.DisruptionTarget)
		p.Status.StartTime = status.StartTime
		if a := spec.Affinity; a != nil && (a.PodAffinity != nil || a.PodAntiAffinity != nil) {
			p.Spec.Affinity = &corev1.Affinity{PodAffinity: a.PodAffinity, PodAntiAffinity: a.PodAntiAffinity}
		}
		return p, nil
	}
	p.Spec.SchedulingGates = spec.SchedulingGates
	p.Spec.ResourceClaims, p.Status.ResourceClaimStatuses = spec.ResourceClaims, status.ResourceClaimStatuses
	p.Spec.NodeSelector = spec.NodeSelector
	p.Spec.Affinity = spec.Affinity
	p.Spec.Tolerations = spec.Tolerations
	p.Spec.TopologySpreadConstraints = spec.TopologySpreadConstraints
	p.Spec.PreemptionPolicy = spec.PreemptionPolicy
	p.Status.Conditions = pick(status.Conditions, corev1.PodScheduled)
	p.Status.NominatedNodeName = status.NominatedNodeName
	return p, nil
}

// trimVolumes keeps the volumes that are claims, and of a Pod that waits also those that are images.
func trimVolumes(in []corev1.Volume, waits bool) []corev1.Volume {
	var out []corev1.Volume
	for i := range in {
		v := corev1.Volume{Name: in[i].Name}
		switch {
		case in[i].PersistentVolumeClaim != nil:
			v.PersistentVolumeClaim = in[i].PersistentVolumeClaim
		case in[i].Ephemeral != nil:
			v.Ephemeral = &corev1.EphemeralVolumeSource{}
		case in[i].Image != nil && waits:
			v.Image = &corev1.ImageVolumeSource{Reference: in[i].Image.Reference}
		default:
			continue
		}
		out = append(out, v)
	}
	return out
}

// trimDeviceClaim keeps what is said of Pods with the claim.
func trimDeviceClaim(object any) (any, error) {
	if claim, ok := object.(*resourcev1.ResourceClaim); ok {
		devices.Trim(claim)
	}
	return object, nil
}

func trimMeta(m *metav1.ObjectMeta) {
	m.ManagedFields, m.Annotations, m.OwnerReferences, m.Finalizers, m.GenerateName = nil, nil, nil, nil, ""
}

// trimContainers returns containers as they come through the mask; those that come so stay in the memory that they
// may share.
func trimContainers(containers []corev1.Container) []corev1.Container {
	if !slices.ContainsFunc(containers, isWhole) {
		return containers
	}
	out := make([]corev1.Container, len(containers))
	for i := range containers {
		c := &containers[i]
		out[i] = corev1.Container{
			Name: c.Name, Image: c.Image, RestartPolicy: c.RestartPolicy, Ports: c.Ports,
			Resources: corev1.ResourceRequirements{Requests: c.Resources.Requests},
		}
	}
	return out
}

// isWhole reports whether the container has anything that is not kept.
func isWhole(c corev1.Container) bool {
	c.Name, c.Image, c.RestartPolicy, c.Ports, c.Resources.Requests = "", "", nil, nil, nil
	return !reflect.ValueOf(&c).Elem().IsZero()
}

// trimStatuses keeps what counts of a container that is being resized.
func trimStatuses(in []corev1.ContainerStatus) []corev1.ContainerStatus {
	var out []corev1.ContainerStatus
	for i := range in {
		if s := &in[i]; s.Resources != nil || s.AllocatedResources != nil {
			out = append(out, corev1.ContainerStatus{Name: s.Name, Resources: s.Resources,
				AllocatedResources: s.AllocatedResources})
		}
	}
	return out
}

func pick(in []corev1.PodCondition, want ...corev1.PodConditionType) []corev1.PodCondition {
	var out []corev1.PodCondition
	for i := range in {
		if slices.Contains(want, in[i].Type) {
			out = append(out, in[i])
		}
	}
	return out
}
