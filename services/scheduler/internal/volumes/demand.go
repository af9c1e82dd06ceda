package volumes

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/localvolume"
	"keelson.dev/kit/podview"
	"keelson.dev/kit/volumename"
	"keelson.dev/services/scheduler/internal/columns"
)

// What users of `kubectl describe pod` know.
const (
	unboundImmediate = "pod has unbound immediate PersistentVolumeClaims"
	missingVolume    = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
)

// Demand is what the claims of a Pod ask of a node. Demands of equal keys are alike to every node.
type Demand struct {
	// Blocked is why no node can take the Pod, whichever; Counted says that it is said of so many nodes.
	Blocked string
	Counted bool
	// Users are the Pods that have a claim which only one Pod may have, by UID.
	Users []User
	// Fresh and Shared are what the Pod brings to a node: new volumes, by driver, and those that some node has already.
	Fresh  []Fresh
	Shared []columns.Volume
	// Required are the drivers that must be on the node, sorted.
	Required []string
	// Needs are what the claims ask, in the order in which volumes are chosen for them.
	Needs []Need
}

// Need is what one claim asks.
type Need struct {
	// Claim is its name, which no node looks at.
	Claim types.NamespacedName
	// Bound is the volume that the claim has, Zones where its labels say that it can be used; the other fields are of a
	// claim that has none.
	Bound *Volume
	Zones []Zone
	// Node is the one that was chosen before; the claim is to be provisioned for it.
	Node string
	// Choice are the volumes that it can have, the best first.
	Choice []*Volume
	// Provision is set when a volume can be made for it, on nodes that Topologies allow; all do if there are none.
	Provision  bool
	Topologies []corev1.TopologySelectorTerm
	// Tracked is set where a node must have storage enough of the class for what is made.
	Tracked bool
	class   string
	size    int64
	index   index
}

// Key is equal for equal demands.
func (d *Demand) Key(b []byte) []byte {
	b = append(append(b, d.Blocked...), 0)
	for i := range d.Needs {
		n := &d.Needs[i]
		b = append(append(b, 1), n.Node...)
		if n.Bound != nil {
			b = append(append(b, 2), n.Bound.affinityKey...)
		}
		for _, v := range n.Choice {
			b = append(append(append(append(b, 3), v.Name...), 4), v.affinityKey...)
			b = binary.AppendVarint(b, v.size)
		}
		if n.scored() {
			b = binary.AppendVarint(append(append(append(b, 6), n.class...), 0), n.size)
		}
		if n.Tracked {
			b = append(b, 7)
		}
		if n.Provision {
			b = append(b, 5)
		}
		for _, t := range n.Topologies {
			b = fmt.Appendf(b, "%v", t.MatchLabelExpressions)
		}
	}
	return b
}

// Unbound reports whether a claim has no volume yet.
func (d *Demand) Unbound() bool {
	return slices.ContainsFunc(d.Needs, func(n Need) bool { return n.Bound == nil })
}

// reference is one claim that a Pod names; owned is set for one that is made for the Pod alone.
type reference struct {
	name  types.NamespacedName
	owned bool
}

// references returns the claims of a Pod.
func references(p *corev1.Pod) (out []reference) {
	for i := range p.Spec.Volumes {
		v := &p.Spec.Volumes[i]
		if name := podview.ClaimName(p, v); name != "" {
			out = append(out, reference{owned: v.PersistentVolumeClaim == nil,
				name: types.NamespacedName{Namespace: p.Namespace, Name: name}})
		}
	}
	return out
}

// Demand returns what the claims of the Pod ask; nil for a Pod without claims.
func (b *Book) Demand(p *corev1.Pod) *Demand {
	names := references(p)
	if len(names) == 0 {
		return nil
	}
	d := &Demand{}
	immediate := false
	for _, ref := range names {
		claim := b.claims[ref.name]
		if wrong := unusable(p, ref, claim); wrong != "" {
			return &Demand{Blocked: wrong}
		}
		d.Users = append(d.Users, b.usersBeside(p.UID, claim)...)
		if slices.ContainsFunc(d.Needs, func(n Need) bool { return n.Claim == ref.name }) {
			continue // mounted twice
		}
		switch {
		case fullyBound(claim):
			bound := b.volumes[claim.Spec.VolumeName]
			if bound == nil {
				d.Blocked, d.Counted = missingVolume, true
			}
			need := Need{Claim: ref.name, Bound: bound}
			if bound != nil && !ref.owned {
				need.Zones = bound.zones
			}
			d.Needs = append(d.Needs, need)
		case claim.Spec.VolumeName == "" && b.delayed(claim):
			d.Needs = append(d.Needs, b.need(ref.name, claim))
		default:
			immediate = true
		}
	}
	if immediate {
		return &Demand{Blocked: unboundImmediate}
	}
	slices.SortStableFunc(d.Needs, func(a, b Need) int { return cmp.Compare(a.turn(), b.turn()) })
	slices.SortFunc(d.Users, func(a, b User) int { return strings.Compare(string(a.UID), string(b.UID)) })
	d.Users = slices.Compact(d.Users)
	claims := make([]types.NamespacedName, 0, len(names))
	for _, ref := range names {
		claims = append(claims, ref.name)
	}
	for _, v := range b.volumesOf(claims) {
		b.attach(d, v)
	}
	return d
}

// Unmade says of each claim of the Pod that has no volume, and for which none that is there will do, who is to make
// one. Nodes are judged as if that happened.
func (b *Book) Unmade(p *corev1.Pod) (says []string) {
	d := b.Demand(p)
	if d == nil {
		return nil
	}
	for i := range d.Needs {
		n := &d.Needs[i]
		if n.Bound != nil || !n.Provision || len(n.Choice) > 0 {
			continue
		}
		class, driverless := b.classes[n.class], ""
		if class.provisioner != localvolume.Driver && !b.drivers[class.driver] {
			driverless = ", which has no CSIDriver,"
		}
		says = append(says, fmt.Sprintf("persistentvolumeclaim %q has no volume: the provisioner %s%s is to make one "+
			"for the Pod's node, and nodes are judged as if it did", n.Claim.Name, class.provisioner, driverless))
	}
	return says
}

// turn orders claims: those that have a volume come first, then those for which a node was chosen, then the smallest.
func (n *Need) turn() int64 {
	switch {
	case n.Bound != nil:
		return -2
	case n.Node != "":
		return -1
	}
	return n.size
}

// unusable says what keeps every node from the claim; nothing when it is fit for use.
func unusable(p *corev1.Pod, ref reference, claim *corev1.PersistentVolumeClaim) string {
	switch name := ref.name.Name; {
	case claim == nil && ref.owned:
		return fmt.Sprintf("waiting for ephemeral volume controller to create the persistentvolumeclaim %q", name)
	case claim == nil:
		return fmt.Sprintf("persistentvolumeclaim %q not found", name)
	case claim.Status.Phase == corev1.ClaimLost:
		return fmt.Sprintf("persistentvolumeclaim %q bound to non-existent persistentvolume %q", name,
			claim.Spec.VolumeName)
	case claim.DeletionTimestamp != nil:
		return fmt.Sprintf("persistentvolumeclaim %q is being deleted", name)
	case ref.owned && !metav1.IsControlledBy(claim, p):
		return fmt.Sprintf("PVC %s was not created for pod %s/%s (pod is not owner)", ref.name, p.Namespace, p.Name)
	}
	return ""
}

// fullyBound reports whether the binding of the claim is complete.
func fullyBound(claim *corev1.PersistentVolumeClaim) bool {
	_, complete := claim.Annotations[BindCompleted]
	return claim.Spec.VolumeName != "" && complete
}

// delayed reports whether the claim waits for a Pod to be scheduled.
func (b *Book) delayed(claim *corev1.PersistentVolumeClaim) bool {
	class := b.classes[className(claim)]
	return class != nil && class.WaitForFirstConsumer
}

// need returns what a claim asks that waits for its first Pod.
func (b *Book) need(name types.NamespacedName, claim *corev1.PersistentVolumeClaim) Need {
	class := b.classes[className(claim)]
	n := Need{Claim: name, Node: claim.Annotations[SelectedNode], class: className(claim), size: size(claim)}
	if node, ok := b.assumedNodes[name]; ok {
		n.Node = node
	}
	for _, v := range b.free[className(claim)] {
		if ref := v.reserved(b); ref != nil {
			if ref.Namespace == name.Namespace && ref.Name == name.Name && (ref.UID == "" || ref.UID == claim.UID) &&
				v.fits(claim) {
				n.Choice, n.Node = []*Volume{v}, ""
				n.index = newIndex(n.Choice)
				return n // it is meant for this claim
			}
			continue
		}
		if v.fits(claim) && v.selectedBy(claim) {
			n.Choice = append(n.Choice, v)
		}
	}
	slices.SortFunc(n.Choice, func(a, b *Volume) int {
		return cmp.Or(cmp.Compare(a.size, b.size), strings.Compare(a.Name, b.Name))
	})
	if n.Node != "" {
		n.Choice = nil
	}
	n.index = newIndex(n.Choice)
	n.Provision, n.Topologies = class.Provisions, class.Topologies
	_, sized := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	n.Tracked = n.Provision && sized && b.tracked[class.provisioner]
	return n
}

// fits reports whether a claim can have the volume, whatever its selector.
func (v *Volume) fits(claim *corev1.PersistentVolumeClaim) bool {
	mode := ptr.Deref(claim.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
	if v.size < size(claim) || ptr.Deref(v.Spec.VolumeMode, corev1.PersistentVolumeFilesystem) != mode {
		return false
	}
	return !slices.ContainsFunc(claim.Spec.AccessModes, func(mode corev1.PersistentVolumeAccessMode) bool {
		return !slices.Contains(v.Spec.AccessModes, mode)
	})
}

func (v *Volume) selectedBy(claim *corev1.PersistentVolumeClaim) bool {
	if claim.Spec.Selector == nil {
		return true
	}
	selector, err := metav1.LabelSelectorAsSelector(claim.Spec.Selector)
	return err == nil && selector.Matches(labels.Set(v.Labels))
}

// reserved returns the claim for which a volume that is free is meant; nil for one that any may have.
func (v *Volume) reserved(b *Book) *corev1.ObjectReference {
	if claim, ok := b.assumedVolumes[v.Name]; ok {
		return &corev1.ObjectReference{Namespace: claim.Namespace, Name: claim.Name}
	}
	return v.Spec.ClaimRef
}

// allows reports whether the volume can be used on the node.
func (v *Volume) allows(node *corev1.Node) bool {
	if v.selector == nil {
		return true
	}
	match, err := v.selector.Match(node)
	return err == nil && match
}

func size(claim *corev1.PersistentVolumeClaim) int64 {
	quantity := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	return quantity.Value()
}

// className is the name of the claim's class; a claim from before the field existed says it by an annotation.
func className(claim *corev1.PersistentVolumeClaim) string {
	if class, ok := claim.Annotations[corev1.BetaStorageClassAnnotation]; ok {
		return class
	}
	return ptr.Deref(claim.Spec.StorageClassName, "")
}

// Volume is a PersistentVolume and what is worked out of it once.
type Volume struct {
	*corev1.PersistentVolume
	selector    *nodeaffinity.LazyErrorNodeSelector
	affinityKey string
	size        int64
	zones       []Zone
	csi         columns.Volume
}

func newVolume(pv *corev1.PersistentVolume) *Volume {
	quantity := pv.Spec.Capacity[corev1.ResourceStorage]
	v := &Volume{PersistentVolume: pv, size: quantity.Value(), zones: zonesOf(pv)}
	v.csi.Driver, v.csi.Handle = volumename.CSI(pv)
	if a := pv.Spec.NodeAffinity; a != nil && a.Required != nil {
		v.selector = nodeaffinity.NewLazyErrorNodeSelector(a.Required)
		if wire, err := a.Required.Marshal(); err == nil {
			v.affinityKey = string(wire)
		}
	}
	return v
}
