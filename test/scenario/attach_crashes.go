package scenario

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/volumename"
	"keelson.dev/test/mesh"
)

// attachCrashes are rounds in which a volume is attached, moved and detached, and where the controller dies in each;
// "" is nowhere. While held is set the driver keeps the volume attached until the controller is back and has looked
// at it: it died before it had to wait for the driver.
var attachCrashes = []struct {
	attach, move, detach string
	held                 bool
}{
	{attach: "persistentvolume.reserve.update.before", move: "node.attached.status.before", held: true,
		detach: "node.attached.status.before"},
	{attach: "persistentvolume.reserve.update.after", move: "node.attached.status.after", held: true,
		detach: "node.attached.status.after"},
	{attach: "volumeattachment.create.before", move: "volumeattachment.delete.before", held: true,
		detach: "volumeattachment.delete.before"},
	{attach: "volumeattachment.create.after", move: "volumeattachment.delete.after", held: true,
		detach: "volumeattachment.delete.after"},
	{attach: "node.attached.status.before", move: "persistentvolume.reserve.update.before"},
	{attach: "node.attached.status.after", move: "persistentvolume.reserve.update.after"},
	{move: "volumeattachment.create.before"},
	{move: "volumeattachment.create.after"},
	{move: "node.attached.status.before=1*off->crash"}, // the record of the new node, after that of the old one
	{move: "node.attached.status.after=1*off->crash"},
}

// VolumeAttachmentThroughCrashes ends the controller at each of its writes while a volume that one node may have
// at a time is attached to a node, moved to another, and detached. After a crash at any moment, exactly the
// attachments that the Pods need exist in the end, and never two meanwhile; none ends before the node's record has
// dropped it, and every unneeded one ends. It needs real daemons, and nodes that report Pods with volumes as
// running.
//
// SAF-188 SAF-197
func VolumeAttachmentThroughCrashes(w *World, from, to string, die Die) {
	a := &attached{World: w, driver: w.Namespace + ".example.com"}
	watched := &audit{attached: a, ending: map[types.UID]int{}}
	a.audit = watched.look
	w.Cleanup(func() {
		_ = w.Client.CoreV1().PersistentVolumes().Delete(context.Background(), w.Namespace, metav1.DeleteOptions{})
	})
	w.KubectlWith(strings.ReplaceAll(attachable, "NS", w.Namespace), "apply", "-f", "-")
	w.prints("pvc/data", "{.status.phase}", "Bound")
	a.drive()
	for i, round := range attachCrashes {
		w.Logf("round %d: %+v", i, round)
		one, two, three := fmt.Sprint("one-", i), fmt.Sprint("two-", i), fmt.Sprint("three-", i)
		a.through(die, round.attach, func() { a.start(one, from) })
		a.runs(one, from)

		watched.held.Store(round.held)
		a.through(die, round.move, func() {
			w.Kubectl("delete", "pod", one, "--wait=false")
			a.start(two, to)
		})
		if round.held { // only the restarted daemon reports it for the third
			a.start(three, to)
			a.told(three, `Multi-Attach error for volume "`+w.Namespace+`" Volume is already exclusively attached`)
			watched.held.Store(false)
		}
		a.runs(two, to)

		a.through(die, round.detach, func() {
			w.Kubectl("delete", "pod", two, three, "--ignore-not-found", "--wait=false")
		})
		a.expect("")
	}
}

// through asks for something while the controller dies at a place, or at none.
func (a *attached) through(die Die, place string, ask func()) {
	a.Helper()
	if place == "" {
		ask()
		return
	}
	if !strings.Contains(place, "=") {
		place += "=crash"
	}
	die(a.World, mesh.WorkloadControllers, "workload-controllers/"+place, ask)
}

// start creates a Pod on a node without the scheduler.
func (a *attached) start(pod, node string) {
	a.Helper()
	a.KubectlWith(attaching(pod, "nodeName: "+node+", "), "apply", "-f", "-")
}

// runs waits until a Pod runs and its node alone has the volume.
func (a *attached) runs(pod, node string) {
	a.Helper()
	a.Kubectl("wait", "pod", pod, "--for=condition=Ready", "--timeout=60s")
	a.expect(node)
}

// audit looks over the shoulder of a driver.
type audit struct {
	*attached
	// held has the driver keep what it is to detach.
	held atomic.Bool
	// ending counts how often an attachment that ends was seen; the driver's own.
	ending map[types.UID]int
}

// detachLooks is how often the driver sees an ending attachment before it detaches the volume, so that code that
// does not wait for the driver fails visibly.
const detachLooks = 3

// look reports what is wrong with the attachments when the driver comes to one, and whether it goes on with it.
func (u *audit) look(ctx context.Context, va *storagev1.VolumeAttachment, all []storagev1.VolumeAttachment) bool {
	for i := range all {
		if other := &all[i]; other.Spec.Attacher == u.driver && other.Spec.NodeName != va.Spec.NodeName {
			u.Errorf("attachments to %s and to %s at once", va.Spec.NodeName, other.Spec.NodeName)
		}
	}
	nodes, err := u.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return false
	}
	for i := range nodes.Items {
		u.lookAtNode(&nodes.Items[i], va)
	}
	if va.DeletionTimestamp == nil {
		return true
	}
	u.ending[va.UID]++
	return !u.held.Load() && u.ending[va.UID] > detachLooks
}

// lookAtNode reports a record of the volume on another node than the attachment's, or of one that ends.
func (u *audit) lookAtNode(n *corev1.Node, va *storagev1.VolumeAttachment) {
	name := volumename.Unique(u.driver, "disk")
	isListed := slices.ContainsFunc(n.Status.VolumesAttached, func(v corev1.AttachedVolume) bool {
		return v.Name == name
	})
	isMine, isEnding := n.Name == va.Spec.NodeName, va.DeletionTimestamp != nil
	if isListed && (!isMine || isEnding) {
		u.Errorf("node %s has the volume on record; it is attached to %s, which ends: %v", n.Name, va.Spec.NodeName,
			isEnding)
	}
}
