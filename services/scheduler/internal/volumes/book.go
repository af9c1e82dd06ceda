// Package volumes says what the claims of Pods ask of nodes: that the volume of each can be used there, or that one can
// be found or made. It knows the claims, PersistentVolumes and StorageClasses of the cluster, and what Pods that have
// just been given a node will do to them.
//
// The package is pure, and one goroutine owns a Book.
//
//keelson:decision
package volumes

import (
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/volumename"
	"keelson.dev/services/scheduler/internal/columns"
)

// Annotations of claims and volumes, in the field's words.
const (
	// BindCompleted is on a claim whose binding is complete.
	BindCompleted = "pv.kubernetes.io/bind-completed"
	// BoundByController is on a volume that no user has reserved.
	BoundByController = "pv.kubernetes.io/bound-by-controller"
	// SelectedNode is the node for which a volume is to be made.
	SelectedNode = "volume.kubernetes.io/selected-node"
)

// noProvisioner is the provisioner of classes whose volumes are all made by users.
const noProvisioner = "kubernetes.io/no-provisioner"

// Class is what counts of a StorageClass.
type Class struct {
	WaitForFirstConsumer bool
	provisioner          string
	driver               string // that took over from the provisioner, or is it
	Provisions           bool
	Topologies           []corev1.TopologySelectorTerm
}

// Book holds all that demands depend on. Make one with New.
type Book struct {
	claims  map[types.NamespacedName]*corev1.PersistentVolumeClaim
	volumes map[string]*Volume
	free    map[string]map[string]*Volume // by class and name, those that a claim may get
	classes map[string]*Class
	drivers map[string]bool // that have a CSIDriver
	tracked map[string]bool // CSI drivers that report how much storage there is
	// required are the CSI drivers that must be on the nodes of Pods with their volumes.
	required map[string]bool

	users map[types.NamespacedName]map[types.UID]bool // Pods that have a node, by claim
	pods  map[types.UID]*pod
	named map[types.NamespacedName]map[types.UID]bool // Pods that wait, by claim
	stale map[types.UID]bool

	assumedVolumes map[string]types.NamespacedName
	assumedNodes   map[types.NamespacedName]string
	holding
}

// pod is what is known of a Pod with claims.
type pod struct {
	claims  []types.NamespacedName
	assumed []Step
	node    string           // empty for one that waits
	kept    bool             // whether room is kept for it on a node
	holds   bool             // either of these
	keeps   bool             // holds for the room alone
	volumes []columns.Volume // what its claims have, or will have
}

// New returns an empty Book.
func New() *Book {
	return &Book{
		claims: map[types.NamespacedName]*corev1.PersistentVolumeClaim{}, volumes: map[string]*Volume{},
		free: map[string]map[string]*Volume{}, classes: map[string]*Class{},
		drivers: map[string]bool{}, tracked: map[string]bool{}, required: map[string]bool{},
		users: map[types.NamespacedName]map[types.UID]bool{}, pods: map[types.UID]*pod{},
		named: map[types.NamespacedName]map[types.UID]bool{}, stale: map[types.UID]bool{},
		assumedVolumes: map[string]types.NamespacedName{}, assumedNodes: map[types.NamespacedName]string{},
		holding: newHolding(),
	}
}

func nameOf(claim *corev1.PersistentVolumeClaim) types.NamespacedName {
	return types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}
}

// SetClaim notes a claim that is new or changed. A version that is older than the known one is left out: what this
// process has written may be known before its watch delivers it.
func (b *Book) SetClaim(claim *corev1.PersistentVolumeClaim) {
	name := nameOf(claim)
	if old := b.claims[name]; old != nil && old.UID == claim.UID && older(claim.ResourceVersion, old.ResourceVersion) {
		return
	}
	b.claims[name] = claim
	b.touchClaim(name)
}

// RemoveClaim notes that a claim is gone.
func (b *Book) RemoveClaim(claim *corev1.PersistentVolumeClaim) {
	delete(b.claims, nameOf(claim))
	b.touchClaim(nameOf(claim))
}

// SetVolume notes a PersistentVolume that is new or changed, as SetClaim does.
func (b *Book) SetVolume(pv *corev1.PersistentVolume) {
	old := b.volumes[pv.Name]
	if old != nil && old.UID == pv.UID && older(pv.ResourceVersion, old.ResourceVersion) {
		return
	}
	v := newVolume(pv)
	b.dropFree(old)
	b.volumes[pv.Name] = v
	if pv.Status.Phase == corev1.VolumeAvailable && pv.DeletionTimestamp == nil {
		class := pv.Spec.StorageClassName
		if b.free[class] == nil {
			b.free[class] = map[string]*Volume{}
		}
		b.free[class][pv.Name] = v
	}
	b.touchVolume(old, v)
}

// RemoveVolume notes that a PersistentVolume is gone.
func (b *Book) RemoveVolume(pv *corev1.PersistentVolume) {
	old := b.volumes[pv.Name]
	b.dropFree(old)
	delete(b.volumes, pv.Name)
	b.touchVolume(old)
}

func (b *Book) dropFree(v *Volume) {
	if v == nil {
		return
	}
	class := v.Spec.StorageClassName
	if delete(b.free[class], v.Name); len(b.free[class]) == 0 {
		delete(b.free, class)
	}
}

// SetClass notes a StorageClass that is new or changed.
func (b *Book) SetClass(c *storagev1.StorageClass) {
	b.classes[c.Name] = &Class{
		WaitForFirstConsumer: ptr.Deref(c.VolumeBindingMode, "") == storagev1.VolumeBindingWaitForFirstConsumer,
		Provisions:           c.Provisioner != "" && c.Provisioner != noProvisioner,
		Topologies:           c.AllowedTopologies,
		provisioner:          c.Provisioner,
		driver:               volumename.DriverOf(c.Provisioner),
	}
	b.touchClass(c.Name)
	b.recountClass(c.Name)
}

// RemoveClass notes that a StorageClass is gone.
func (b *Book) RemoveClass(name string) {
	delete(b.classes, name)
	b.touchClass(name)
	b.recountClass(name)
}

// recountClass looks again at the volumes of the Pods that have claims of a class without a volume.
func (b *Book) recountClass(class string) {
	for name, users := range b.users {
		if claim := b.claims[name]; claim != nil && className(claim) == class {
			for uid := range users {
				b.recount(uid)
			}
		}
	}
}

// older reports whether a version is older than another of the same object.
func older(a, b string) bool {
	x, errX := strconv.ParseUint(a, 10, 64)
	y, errY := strconv.ParseUint(b, 10, 64)
	return errX == nil && errY == nil && x < y
}

// touchClaim notes that what Pods ask by a claim may have changed.
func (b *Book) touchClaim(name types.NamespacedName) {
	for uid := range b.named[name] {
		b.stale[uid] = true
		b.recount(uid)
	}
	for uid := range b.users[name] {
		b.recount(uid)
	}
}

// touchVolume is touchClaim for the claims that have or may get one of these volumes.
func (b *Book) touchVolume(versions ...*Volume) {
	for _, v := range versions {
		if v == nil {
			continue
		}
		for uid := range b.ofVolume[v.Name] {
			b.readAttachment(uid)
		}
		if ref := v.Spec.ClaimRef; ref != nil {
			b.touchClaim(types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name})
		}
		if v.Status.Phase == corev1.VolumeAvailable {
			b.touchClass(v.Spec.StorageClassName)
		}
	}
}

// touchClass is touchClaim for the claims of a class.
func (b *Book) touchClass(class string) {
	for name := range b.named {
		if claim := b.claims[name]; claim != nil && claim.Spec.VolumeName == "" && className(claim) == class {
			b.touchClaim(name)
		}
	}
}

// TakeStale returns the Pods whose demands may have changed since the last call.
func (b *Book) TakeStale() []types.UID {
	stale := slices.Collect(maps.Keys(b.stale))
	clear(b.stale)
	return stale
}
