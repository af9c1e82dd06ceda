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

// forceAfter is how long a node that is not ready keeps a volume that no Pod on it has any more, as in Kubernetes.
const forceAfter = 6 * time.Minute

// NodeInput is all that a decision about the attachments of a node depends on. DecideNode changes none of it.
type NodeInput struct {
	Name string
	// Node is nil where there is no Node of the name: nothing runs there any more.
	Node *corev1.Node
	// Attachments are those to the node.
	Attachments []Attachment
	// KeepForever switches off that time alone takes a volume from a node that is not ready.
	KeepForever bool
	Now         time.Time
}

// Attachment is a VolumeAttachment and what it is of.
type Attachment struct {
	Object *storagev1.VolumeAttachment
	// Volume is the zero Volume where nothing says which it is.
	Volume Volume
	// Ours says that it has the name of those that this controller makes; others are left alone.
	Ours bool
	// Misplaced says that the volume is reserved for another node.
	Misplaced bool
	// Users are the Pods on the node that name the volume.
	Users []User
	// Unused is since when there has been none.
	Unused time.Time
}

// Why says what lets a volume be taken from a node.
type Why string

// What lets a volume be taken from a node. All but Free look away from what the node says that it uses.
const (
	Free         Why = "Free"         // The node does not use it.
	NodeGone     Why = "NodeGone"     // There is no such Node.
	OutOfService Why = "OutOfService" // The node was declared to be switched off.
	TimedOut     Why = "TimedOut"     // The node has not been ready, and had six minutes.
)

// NodePlan names every effect of one pass over a node.
type NodePlan struct {
	// Attached is what the node's record is to list, in order; Record says that it does not. Added are the attachments
	// that come to it.
	Attached []corev1.AttachedVolume
	Record   bool
	Added    []Attachment
	Detach   []Detach
	// InUse are the attachments that no Pod has any more and that the node uses.
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

// DecideNode says what a node's record lists as attached, and which attachments end. Nothing ends while the object of
// a Pod that has it exists and has not ended; after that the node must have said that it does not use the volume, or
// somebody that the node is off. The record goes first: it is what the node looks at before it starts a Pod.
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

// isAttached reports whether the driver has attached the volume and nobody is taking it away.
func isAttached(a *storagev1.VolumeAttachment) bool {
	return a.Status.Attached && a.DeletionTimestamp == nil
}

// isStray reports whether the attachment is of a volume that is reserved for another node, and no Pod was let near it.
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

// list has the node's record name the volume.
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
