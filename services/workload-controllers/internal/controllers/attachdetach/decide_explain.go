package attachdetach

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"keelson.dev/kit/explain"
)

// PodVolumes is the input of the explanation of a Pod: the decisions about its volumes.
type PodVolumes struct {
	Pod  *corev1.Pod
	Node *corev1.Node
	// Volumes are those of its claims that are attached; Plans are the decisions about them, in the same order.
	Volumes []VolumeInput
	Plans   []VolumePlan
	// Unguarded are the volumes that nothing prevents from being used on two nodes, whatever their access modes say.
	Unguarded []*corev1.PersistentVolume
}

// breaking explains how to break an attachment by hand, and what that means.
const breaking = "kubectl delete volumeattachment %s breaks it by hand, which is as dangerous as forcing the " +
	"deletion of a Pod: do so only when node %s is off or shut off from the storage, or two nodes write to the " +
	"volume and data is lost"

// podAccount explains what the volumes of a Pod wait for.
func podAccount(in PodVolumes) explain.Account {
	a := explain.Account{Whole: true, Settled: settled(in)}
	for i, volume := range in.Volumes {
		volumeAccount(&a, in, volume, in.Plans[i])
	}
	return a
}

func volumeAccount(a *explain.Account, in PodVolumes, volume VolumeInput, plan VolumePlan) {
	node, name := in.Pod.Spec.NodeName, volume.PV.Name
	own := slices.IndexFunc(volume.Attachments, func(v *storagev1.VolumeAttachment) bool {
		return v.Spec.NodeName == node
	})
	blocked := slices.IndexFunc(plan.Blocked, func(b Blocked) bool { return b.Pod.UID == in.Pod.UID })
	switch {
	case slices.Contains(plan.Attach, node):
		a.Do(1, "attaches PersistentVolume %s to node %s", name, node)
	case blocked >= 0:
		a.Wait(blockedWait(name, node, plan.Blocked[blocked]))
	case own >= 0:
		ownWait(a, in, volume, volume.Attachments[own])
	case in.Node != nil && isOutOfService(in.Node):
		a.Wait(explain.Wait{Reason: string(OutOfService), For: fmt.Sprintf(
			"PersistentVolume %s to be attached to node %s, which was declared to be off", name, node),
			Ends: "the taint " + corev1.TaintNodeOutOfService + " is taken off"})
	}
}

// blockedWait describes which node has the volume.
func blockedWait(volume, node string, b Blocked) explain.Wait {
	wait := explain.Wait{Reason: reasonFailed,
		For:  fmt.Sprintf("PersistentVolume %s to be attached to node %s", volume, node),
		Ends: "the node that is just being given it has let go of it"}
	if b.By == nil {
		return wait
	}
	holder := b.By.Spec.NodeName
	wait.Since = b.Pod.CreationTimestamp.Time
	wait.For += fmt.Sprintf(": node %s holds it since %s", holder, explain.At(b.By.CreationTimestamp.Time))
	wait.Ends = fmt.Sprintf("VolumeAttachment %s is gone, which follows when node %s says that it does not use the "+
		"volume", b.By.Name, holder)
	if len(b.Users) > 0 {
		var pods []string
		for _, user := range b.Users {
			pods = append(pods, user.Pod.Namespace+"/"+user.Pod.Name)
		}
		slices.Sort(pods)
		wait.For += " for Pod " + strings.Join(pods, ", ")
		wait.Ends = fmt.Sprintf("VolumeAttachment %s is gone, which follows when that Pod is, however long it takes",
			b.By.Name)
	}
	wait.Ends += "; " + fmt.Sprintf(breaking, b.By.Name, holder)
	return wait
}

// ownWait describes the state of the attachment to the Pod's own node.
func ownWait(a *explain.Account, in PodVolumes, volume VolumeInput, own *storagev1.VolumeAttachment) {
	node, name := in.Pod.Spec.NodeName, volume.PV.Name
	switch {
	case own.DeletionTimestamp != nil:
		a.Wait(explain.Wait{Since: own.DeletionTimestamp.Time, Reason: "Detaching", For: fmt.Sprintf(
			"driver %s to detach PersistentVolume %s from node %s", own.Spec.Attacher, name, node),
			Ends: "VolumeAttachment " + own.Name + " is gone"})
	case !own.Status.Attached:
		said, since := "", own.CreationTimestamp.Time
		if e := own.Status.AttachError; e != nil {
			said, since = ", which said: "+e.Message, later(since, e.Time.Time)
		}
		a.Wait(explain.Wait{Since: since, Reason: "Attaching", For: fmt.Sprintf(
			"driver %s to attach PersistentVolume %s to node %s%s", own.Spec.Attacher, name, node, said),
			Ends: "the driver says so in VolumeAttachment " + own.Name})
	case in.Node != nil && !lists(in.Node, volume.Volume):
		a.Do(1, "writes into node %s that PersistentVolume %s is attached", node, name)
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// settled lists the attached volumes and the unguarded ones.
func settled(in PodVolumes) string {
	var names []string
	for _, volume := range in.Volumes {
		names = append(names, volume.PV.Name)
	}
	text := "none of its volumes is one that is attached to a node"
	if len(names) > 0 {
		text = fmt.Sprintf("attached to node %s: %s", in.Pod.Spec.NodeName, strings.Join(names, ", "))
	}
	for _, pv := range in.Unguarded {
		text += fmt.Sprintf("; nothing keeps PersistentVolume %s from two nodes at a time, although it says %s: Pods "+
			"on different nodes may damage its data, also two of a Deployment or ReplicaSet of one replica, which "+
			"overlap", pv.Name, pv.Spec.AccessModes[0])
	}
	return text
}

// isUnguarded reports whether a volume that needs no attaching restricts access to one node, yet other nodes can
// reach it.
func isUnguarded(pv *corev1.PersistentVolume) bool {
	s := &pv.Spec.PersistentVolumeSource
	bound := s.HostPath != nil || s.Local != nil || s.CSI != nil && !needsAttaching(s.CSI.Driver, nil)
	return !bound && len(pv.Spec.AccessModes) > 0 && isExclusive(pv)
}
