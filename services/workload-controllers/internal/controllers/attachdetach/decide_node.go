package attachdetach

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/podview"
)

// forceAfter is how long a volume without Pods stays attached to a node that is not ready but uses it, as in
// Kubernetes.
const forceAfter = 6 * time.Minute

// NodeInput is all that a decision about the attachments of a node depends on. DecideNode changes none of it.
type NodeInput struct {
	Name string
	// Node is nil if no Node of the name exists: nothing runs there any more.
	Node *corev1.Node
	// Attachments are those to the node.
	Attachments []Attachment
	// KeepForever says never to detach a volume from a node only because it has not been ready for long.
	KeepForever bool
	Now         time.Time
}

// Attachment is a VolumeAttachment and its volume.
type Attachment struct {
	Object *storagev1.VolumeAttachment
	// Volume is the zero Volume if it is unknown.
	Volume Volume
	// Ours says that the name is one that this controller gives; other attachments are left alone.
	Ours bool
	// Misplaced says that the volume is reserved for another node.
	Misplaced bool
	// Users are the Pods on the node that name the volume.
	Users []User
	// Unused is since when there have been no users.
	Unused time.Time
}

// Why is the reason why a volume may be detached from a node.
type Why string

// The reasons to detach a volume. All but Free disregard which volumes the node reports as in use.
const (
	Free         Why = "Free"         // The node does not use it.
	NodeGone     Why = "NodeGone"     // There is no such Node.
	OutOfService Why = "OutOfService" // The node was declared to be switched off.
	TimedOut     Why = "TimedOut"     // The node has not been ready, and had six minutes.
)

// NodePlan names every effect of one pass over a node.
type NodePlan struct {
	// Attached is what the node's record must list, in order; Record says that it must be written. Added are the
	// attachments that the write adds.
	Attached []corev1.AttachedVolume
	Record   bool
	Added    []Attachment
	Detach   []Detach
	// InUse are the attachments without Pods that the node still uses.
	InUse []Attachment
	// Wake is when to look again; zero: when something changes.
	Wake   time.Time
	Events []PodEvent
}

// Detach is an attachment that ends.
type Detach struct {
	Attachment
	Why Why
}

// DecideNode returns what a node's record must list as attached, and which attachments end. An attachment does not
// end while the object of a Pod that uses it exists and has not ended; after that the node must have reported the
// volume as unused, or a user must have declared the node to be off. The record changes first: the node reads it
// before it starts a Pod.
func DecideNode(in NodeInput) NodePlan {
	var plan NodePlan
	for _, a := range in.Attachments {
		ends, why := plan.look(in, a)
		if ends {
			plan.Detach = append(plan.Detach, Detach{Attachment: a, Why: why})
		} else if in.Node != nil && isAttached(a.Object) && a.Volume != (Volume{}) && !isStray(in.Node, a) {
			plan.list(in.Node, a)
		}
	}
	slices.SortFunc(plan.Attached, func(a, b corev1.AttachedVolume) int { return cmp.Compare(a.Name, b.Name) })
	plan.Attached = slices.CompactFunc(plan.Attached, sameVolume)
	plan.Record = in.Node != nil && !slices.Equal(plan.Attached, in.Node.Status.VolumesAttached)
	return plan
}

func sameVolume(a, b corev1.AttachedVolume) bool { return a.Name == b.Name }

// isAttached reports whether the driver has attached the volume and the attachment is not being deleted.
func isAttached(a *storagev1.VolumeAttachment) bool {
	return a.Status.Attached && a.DeletionTimestamp == nil
}

// isStray reports whether the volume is reserved for another node, and this node's record does not let a Pod use
// it.
func isStray(node *corev1.Node, a Attachment) bool {
	return a.Misplaced && (node == nil || !lists(node, a.Volume))
}

// look reports whether an attachment ends, and otherwise notes what it waits for.
func (p *NodePlan) look(in NodeInput, a Attachment) (ends bool, why Why) {
	if !a.Ours || a.Object.DeletionTimestamp != nil || len(a.Users) > 0 && !isStray(in.Node, a) {
		return false, ""
	}
	switch {
	case in.Node == nil:
		return true, NodeGone
	case !slices.Contains(in.Node.Status.VolumesInUse, a.Volume.Name()):
		return true, Free
	case isOutOfService(in.Node):
		return true, OutOfService
	}
	p.InUse = append(p.InUse, a)
	if in.KeepForever || isReady(in.Node) {
		return false, ""
	}
	end := a.Unused.Add(forceAfter)
	if !end.After(in.Now) {
		p.InUse = p.InUse[:len(p.InUse)-1]
		return true, TimedOut
	}
	if p.Wake.IsZero() || end.Before(p.Wake) {
		p.Wake = end
	}
	return false, ""
}

// list adds the volume to the node's record.
func (p *NodePlan) list(node *corev1.Node, a Attachment) {
	p.Attached = append(p.Attached, corev1.AttachedVolume{Name: a.Volume.Name()})
	if lists(node, a.Volume) {
		return
	}
	p.Added = append(p.Added, a)
	for _, user := range a.Users {
		if podview.IsActive(user.Pod) {
			p.Events = append(p.Events, PodEvent{Pod: user.Pod,
				Event: attached(ptr.Deref(a.Object.Spec.Source.PersistentVolumeName, ""))})
		}
	}
}
