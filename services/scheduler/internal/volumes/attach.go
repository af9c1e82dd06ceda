package volumes

import (
	"cmp"
	"slices"
	"strings"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"keelson.dev/services/scheduler/internal/columns"
)

// Nodes take only so many volumes of a CSI driver. Here is which Pod has which volumes, and which other volumes are on
// a node or on their way there; how many a node takes, and has, is in the columns.

// holding is who has which volumes.
type holding struct {
	holders map[columns.Volume]int                // how many Pods that hold it and attachments there are, by volume
	wanted  map[columns.Volume]map[types.UID]bool // other Pods, by volume
	keeps   map[columns.Volume]map[types.UID]bool // Pods that hold it only because room is kept for them, by volume
	moved   map[types.UID]bool                    // Pods of which the columns do not know

	movedAttachments map[types.UID]bool

	attachments map[types.UID]*storagev1.VolumeAttachment
	attached    map[types.UID][]columns.Volume
	ofVolume    map[string]map[types.UID]bool // attachments, by PersistentVolume
}

func newHolding() holding {
	return holding{holders: map[columns.Volume]int{}, wanted: map[columns.Volume]map[types.UID]bool{},
		keeps: map[columns.Volume]map[types.UID]bool{}, moved: map[types.UID]bool{},
		movedAttachments: map[types.UID]bool{},
		attachments:      map[types.UID]*storagev1.VolumeAttachment{}, attached: map[types.UID][]columns.Volume{},
		ofVolume: map[string]map[types.UID]bool{}}
}

// Fresh is how many volumes of a driver a Pod brings to whichever node it goes to.
type Fresh struct {
	Driver string
	Count  int
}

// attach notes what a Pod brings to a node. A volume that no other Pod has takes an attachment on any node, whichever
// it is: only volumes that are in use make Pods unlike.
func (b *Book) attach(d *Demand, v columns.Volume) {
	if b.required[v.Driver] && !slices.Contains(d.Required, v.Driver) {
		d.Required = append(d.Required, v.Driver) // in order, as volumes are
	}
	if b.holders[v] > 0 {
		if !slices.Contains(d.Shared, v) {
			d.Shared = append(d.Shared, v)
		}
		return
	}
	i, found := slices.BinarySearchFunc(d.Fresh, v.Driver, func(f Fresh, driver string) int {
		return strings.Compare(f.Driver, driver)
	})
	if !found {
		d.Fresh = slices.Insert(d.Fresh, i, Fresh{Driver: v.Driver})
	}
	d.Fresh[i].Count++
}

// volumesOf returns the volumes of claims that count on a node, each once and in order.
func (b *Book) volumesOf(claims []types.NamespacedName) (out []columns.Volume) {
	for _, name := range claims {
		if v, ok := b.volumeOf(name); ok {
			out = append(out, v)
		}
	}
	slices.SortFunc(out, func(x, y columns.Volume) int {
		return cmp.Or(strings.Compare(x.Driver, y.Driver), strings.Compare(x.Handle, y.Handle))
	})
	return slices.Compact(out)
}

// volumeOf returns the volume of a claim: the one that it has, else one that its class will make.
func (b *Book) volumeOf(name types.NamespacedName) (columns.Volume, bool) {
	claim := b.claims[name]
	if claim == nil {
		return columns.Volume{}, false
	}
	if v := b.volumes[claim.Spec.VolumeName]; v != nil {
		return v.csi, v.csi.Driver != "" && v.csi.Handle != ""
	}
	class := b.classes[className(claim)]
	if class == nil || class.driver == "" {
		return columns.Volume{}, false
	}
	return columns.Volume{Driver: class.driver, Handle: "\x00" + name.String()}, true
}

// recount finds out again which volumes a known Pod has. A nominated Pod counts as one on its node.
func (b *Book) recount(uid types.UID) {
	known := b.pods[uid]
	holds, now := known.node != "" || known.kept, b.volumesOf(known.claims)
	keeps := known.node == "" && known.kept
	if known.holds == holds && known.keeps == keeps && slices.Equal(known.volumes, now) {
		return
	}
	b.count(uid, known, -1)
	known.volumes, known.holds, known.keeps = now, holds, keeps
	b.count(uid, known, 1)
}

// Keep notes whether room is kept on a node for a Pod without a node.
func (b *Book) Keep(uid types.UID, kept bool) {
	if known := b.pods[uid]; known != nil {
		known.kept = kept
		b.recount(uid)
	}
}

// count adds (by 1) or takes back (by -1) what a Pod has or wants.
func (b *Book) count(uid types.UID, known *pod, by int) {
	note := add[columns.Volume]
	if by < 0 {
		note = drop[columns.Volume]
	}
	for _, v := range known.volumes {
		if !known.holds {
			note(b.wanted, v, uid)
			continue
		}
		b.hold(v, by)
		if known.keeps {
			note(b.keeps, v, uid)
		}
	}
	b.moved[uid] = true
}

// hold counts one more user of a volume. Pods that want it look again if it was unused before, or is now; nominated
// Pods look again if another Pod joins a volume that may have been theirs alone.
func (b *Book) hold(v columns.Volume, by int) {
	before := b.holders[v]
	if b.holders[v] += by; b.holders[v] == 0 {
		delete(b.holders, v)
	}
	if before == 0 || before+by == 0 {
		for uid := range b.wanted[v] {
			b.stale[uid] = true
		}
	}
	if by > 0 {
		for uid := range b.keeps[v] {
			b.stale[uid] = true
		}
	}
}

// attachmentID is how the columns know an attachment; no Pod has such a UID.
func attachmentID(name string) types.UID { return types.UID("attachment/" + name) }

// SetAttachment notes a VolumeAttachment that is new or changed.
func (b *Book) SetAttachment(a *storagev1.VolumeAttachment) {
	b.RemoveAttachment(a.Name)
	uid := attachmentID(a.Name)
	b.attachments[uid] = a
	add(b.ofVolume, ptr.Deref(a.Spec.Source.PersistentVolumeName, ""), uid)
	b.readAttachment(uid)
}

// RemoveAttachment notes that a VolumeAttachment is gone.
func (b *Book) RemoveAttachment(name string) {
	uid := attachmentID(name)
	if a := b.attachments[uid]; a != nil {
		delete(b.attachments, uid)
		drop(b.ofVolume, ptr.Deref(a.Spec.Source.PersistentVolumeName, ""), uid)
		b.readAttachment(uid)
	}
}

// readAttachment finds out again which volume an attachment is of.
func (b *Book) readAttachment(uid types.UID) {
	var now []columns.Volume
	if a := b.attachments[uid]; a != nil {
		v := b.volumes[ptr.Deref(a.Spec.Source.PersistentVolumeName, "")]
		if v != nil && v.csi.Handle != "" {
			now = []columns.Volume{{Driver: a.Spec.Attacher, Handle: v.csi.Handle}}
		}
	}
	for _, v := range b.attached[uid] {
		b.hold(v, -1)
	}
	if b.attached[uid] = now; now == nil {
		delete(b.attached, uid)
	}
	for _, v := range now {
		b.hold(v, 1)
	}
	b.movedAttachments[uid] = true
}

// Moved updates the columns for the Pods and attachments that have other volumes than the columns know.
func (b *Book) Moved(s *columns.State) {
	for uid := range b.moved {
		var now []columns.Volume
		if known := b.pods[uid]; known != nil {
			now = known.volumes
		}
		s.SetVolumes(uid, now)
	}
	for uid := range b.movedAttachments {
		node := ""
		if a := b.attachments[uid]; a != nil {
			node = a.Spec.NodeName
		}
		s.SetAttachment(uid, node, b.attached[uid])
	}
	clear(b.moved)
	clear(b.movedAttachments)
}

// Drivers returns which drivers a node has, sorted, and how many volumes of each it takes; of one that is not in limits
// it takes any number.
func Drivers(n *storagev1.CSINode) (drivers []string, limits map[string]int32) {
	for i := range n.Spec.Drivers {
		d := &n.Spec.Drivers[i]
		drivers = append(drivers, d.Name)
		if d.Allocatable == nil || d.Allocatable.Count == nil {
			continue
		}
		if limits == nil {
			limits = map[string]int32{}
		}
		limits[d.Name] = *d.Allocatable.Count
	}
	slices.Sort(drivers)
	return drivers, limits
}
