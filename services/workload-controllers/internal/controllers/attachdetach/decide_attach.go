package attachdetach

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"keelson.dev/kit/events"
)

// VolumeInput is all that a decision about a volume depends on. DecideVolume changes none of it.
type VolumeInput struct {
	Volume Volume
	// PV is the PersistentVolume of the volume; if nil, the volume is not attached to further nodes.
	PV *corev1.PersistentVolume
	// Required says that the driver attaches its volumes.
	Required bool
	// Users are the Pods that name the volume, on any node.
	Users []User
	// Attachments are all attachments of the volume, whoever made them, including those being deleted.
	Attachments []*storagev1.VolumeAttachment
	// Nodes are those of the users.
	Nodes map[string]*corev1.Node
}

// VolumePlan names every effect of one pass over a volume.
type VolumePlan struct {
	// Attach are the nodes to attach the volume to, in order; at most one if Reserve is set.
	Attach []string
	// Reserve says to reserve the volume for the node first.
	Reserve bool
	// Blocked are the Pods whose node may not have the volume yet.
	Blocked []Blocked
	Events  []PodEvent
}

// Blocked is a Pod that waits for another node to let go of the volume.
type Blocked struct {
	Pod *corev1.Pod
	// By is the attachment that it waits for; nil if the volume is about to be attached to another node.
	By *storagev1.VolumeAttachment
	// Users are the Pods that use the volume on that node.
	Users []User
}

// PodEvent is an Event about a Pod.
type PodEvent struct {
	Pod   *corev1.Pod
	Event events.Event
}

// DecideVolume attaches a volume to the nodes whose Pods wait for it. A volume that only one node may have is not
// attached to a second node while any attachment of it exists, however long that takes.
func DecideVolume(in VolumeInput) VolumePlan {
	if in.PV == nil || !in.Required {
		return VolumePlan{}
	}
	var plan VolumePlan
	waiting := waitingNodes(in)
	plan.Events = failures(in)
	switch {
	case len(waiting) == 0:
	case !isExclusive(in.PV):
		plan.Attach = slices.Sorted(maps.Keys(waiting))
	case len(in.Attachments) > 0:
		by := slices.MinFunc(in.Attachments, func(a, b *storagev1.VolumeAttachment) int {
			return cmp.Compare(a.Spec.NodeName, b.Spec.NodeName)
		})
		plan.block(in, waiting, by)
	default:
		first := firstNode(in, waiting)
		plan.Attach, plan.Reserve = []string{first}, true
		delete(waiting, first)
		plan.block(in, waiting, nil)
	}
	return plan
}

// waitingNodes returns the Pods that wait for the volume to be attached, by node.
func waitingNodes(in VolumeInput) map[string][]*corev1.Pod {
	waiting := map[string][]*corev1.Pod{}
	for _, user := range in.Users {
		name := user.Pod.Spec.NodeName
		node := in.Nodes[name]
		has := slices.ContainsFunc(in.Attachments, func(a *storagev1.VolumeAttachment) bool {
			return a.Spec.NodeName == name
		})
		if !has && user.waits() && node != nil && !isOutOfService(node) {
			waiting[name] = append(waiting[name], user.Pod)
		}
	}
	return waiting
}

// firstNode returns the node that gets an unattached volume. Pods that have run, whose attachment was broken by
// hand, come after Pods that never had the volume; then the node that the volume is reserved for comes first, then
// the node of the oldest Pod.
func firstNode(in VolumeInput, waiting map[string][]*corev1.Pod) string {
	reserved := in.PV.Annotations[reservedFor]
	var pods []*corev1.Pod
	for _, on := range waiting {
		pods = append(pods, on...)
	}
	first := slices.MinFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Or(
			after(a.Status.Phase == corev1.PodRunning, b.Status.Phase == corev1.PodRunning),
			after(a.Spec.NodeName != reserved, b.Spec.NodeName != reserved),
			a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
			cmp.Compare(a.UID, b.UID))
	})
	return first.Spec.NodeName
}

// after orders false before true.
func after(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// block records which Pods wait, and for which attachment.
func (p *VolumePlan) block(in VolumeInput, waiting map[string][]*corev1.Pod, by *storagev1.VolumeAttachment) {
	var users []User
	if by != nil {
		users = onNode(in.Users, by.Spec.NodeName)
	}
	for _, node := range slices.Sorted(maps.Keys(waiting)) {
		for _, pod := range waiting[node] {
			p.Blocked = append(p.Blocked, Blocked{Pod: pod, By: by, Users: users})
			if by != nil {
				p.Events = append(p.Events, PodEvent{Pod: pod, Event: multiAttach(in.PV.Name, pod, users)})
			}
		}
	}
}

// failures returns events that tell the waiting Pods why the driver could not attach the volume.
func failures(in VolumeInput) []PodEvent {
	var all []PodEvent
	for _, a := range in.Attachments {
		if a.Status.Attached || a.Status.AttachError == nil || a.DeletionTimestamp != nil {
			continue
		}
		for _, user := range onNode(in.Users, a.Spec.NodeName) {
			if user.waits() {
				event := attachFailed(in.PV.Name, a.Status.AttachError.Message)
				all = append(all, PodEvent{Pod: user.Pod, Event: event})
			}
		}
	}
	return all
}
