package attachdetach

import (
	"cmp"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/component-helpers/storage/ephemeral"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/controller"
	"keelson.dev/kit/podview"
	"keelson.dev/services/workload-controllers/internal/storeindex"
)

// The indexes: bound Pods by claim and node; claims by the PersistentVolume that they name; PersistentVolumes by
// their volume and driver; attachments by PersistentVolume, node and driver. Pods without claims are not indexed.
const (
	podsByClaim         = "attachdetach/claim"
	podsByNode          = "attachdetach/node"
	claimsByPV          = "attachdetach/pv"
	pvsByVolume         = "attachdetach/volume"
	pvsByDriver         = "attachdetach/driver"
	attachmentsByPV     = "attachdetach/pv"
	attachmentsByNode   = "attachdetach/node"
	attachmentsByDriver = "attachdetach/driver"
)

// stores are the caches that the decisions read.
type stores struct {
	pods, claims, pvs, attachments, nodes, drivers toolscache.Indexer
}

func storesOf(s *controller.Setup) *stores {
	all := &stores{pods: s.Store(&corev1.Pod{}), claims: s.Store(&corev1.PersistentVolumeClaim{}),
		pvs: s.Store(&corev1.PersistentVolume{}), attachments: s.Store(&storagev1.VolumeAttachment{}),
		nodes: s.Store(&corev1.Node{}), drivers: s.Store(&storagev1.CSIDriver{})}
	s.Check(all.index())
	return all
}

// index adds the indexes where they are missing.
func (s *stores) index() error {
	return errors.Join(
		storeindex.Add(s.pods, podsByClaim, func(p *corev1.Pod) []string {
			if p.Spec.NodeName == "" {
				return nil
			}
			return claimKeys(p)
		}),
		storeindex.Add(s.pods, podsByNode, func(p *corev1.Pod) []string {
			if p.Spec.NodeName == "" || len(claimKeys(p)) == 0 {
				return nil
			}
			return []string{p.Spec.NodeName}
		}),
		storeindex.Add(s.claims, claimsByPV, func(c *corev1.PersistentVolumeClaim) []string {
			if c.Spec.VolumeName == "" {
				return nil
			}
			return []string{c.Spec.VolumeName}
		}),
		storeindex.Add(s.pvs, pvsByVolume, func(v *corev1.PersistentVolume) []string {
			if volume, ok := volumeOf(v); ok {
				return []string{string(volume.Name())}
			}
			return nil
		}),
		storeindex.Add(s.pvs, pvsByDriver, func(v *corev1.PersistentVolume) []string {
			if volume, ok := volumeOf(v); ok {
				return []string{volume.Driver}
			}
			return nil
		}),
		storeindex.Add(s.attachments, attachmentsByPV, func(a *storagev1.VolumeAttachment) []string {
			return []string{pvName(a)}
		}),
		storeindex.Add(s.attachments, attachmentsByNode, func(a *storagev1.VolumeAttachment) []string {
			return []string{a.Spec.NodeName}
		}),
		storeindex.Add(s.attachments, attachmentsByDriver, func(a *storagev1.VolumeAttachment) []string {
			return []string{a.Spec.Attacher}
		}),
	)
}

// pvName returns the name of the attachment's PersistentVolume, or "".
func pvName(a *storagev1.VolumeAttachment) string {
	return ptr.Deref(a.Spec.Source.PersistentVolumeName, "")
}

// claimKeys returns the keys of the claims that a Pod names, each once.
func claimKeys(pod *corev1.Pod) []string {
	var keys []string
	for _, name := range podview.ClaimNames(pod) {
		keys = append(keys, storeindex.Key(pod.Namespace, name))
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// pvsOf returns the PersistentVolumes of a volume, in order.
func (s *stores) pvsOf(volume Volume) []*corev1.PersistentVolume {
	found := storeindex.Find[corev1.PersistentVolume](s.pvs, pvsByVolume, string(volume.Name()))
	slices.SortFunc(found, func(a, b *corev1.PersistentVolume) int { return cmp.Compare(a.Name, b.Name) })
	return found
}

// pvsOfPod returns the PersistentVolumes that the claims of a Pod name.
func (s *stores) pvsOfPod(pod *corev1.Pod) []*corev1.PersistentVolume {
	var pvs []*corev1.PersistentVolume
	for _, key := range claimKeys(pod) {
		if claim := storeindex.Get[corev1.PersistentVolumeClaim](s.claims, key); claim != nil {
			if pv := storeindex.Get[corev1.PersistentVolume](s.pvs, claim.Spec.VolumeName); pv != nil {
				pvs = append(pvs, pv)
			}
		}
	}
	return pvs
}

// volumesOf returns the volumes that the claims of a Pod name.
func (s *stores) volumesOf(pod *corev1.Pod) []Volume {
	var volumes []Volume
	for _, pv := range s.pvsOfPod(pod) {
		if volume, ok := volumeOf(pv); ok {
			volumes = append(volumes, volume)
		}
	}
	return volumes
}

// volumeOfPV returns the volume of the PersistentVolume of the name.
func (s *stores) volumeOfPV(name string) (Volume, bool) {
	if pv := storeindex.Get[corev1.PersistentVolume](s.pvs, name); pv != nil {
		return volumeOf(pv)
	}
	return Volume{}, false
}

// usersOf returns the Pods that use one of the PersistentVolumes, through a claim that names it or that it names.
func (s *stores) usersOf(pvs ...string) []User {
	users := map[types.UID]User{}
	for _, name := range pvs {
		pv := storeindex.Get[corev1.PersistentVolume](s.pvs, name)
		for _, key := range s.claimsOf(name, pv) {
			claim := storeindex.Get[corev1.PersistentVolumeClaim](s.claims, key)
			for _, pod := range storeindex.Find[corev1.Pod](s.pods, podsByClaim, key) {
				if podview.IsTerminal(pod) {
					continue
				}
				has := users[pod.UID].HasClaim || hasClaim(pod, claim, pv)
				users[pod.UID] = User{Pod: pod, HasClaim: has}
			}
		}
	}
	sorted := make([]User, 0, len(users))
	for _, user := range users {
		sorted = append(sorted, user)
	}
	slices.SortFunc(sorted, func(a, b User) int { return cmp.Compare(a.Pod.UID, b.Pod.UID) })
	return sorted
}

// claimsOf returns the keys of the claims that name a PersistentVolume, and of the claim that it names.
func (s *stores) claimsOf(name string, pv *corev1.PersistentVolume) []string {
	var keys []string
	for _, claim := range storeindex.Find[corev1.PersistentVolumeClaim](s.claims, claimsByPV, name) {
		keys = append(keys, storeindex.Key(claim.Namespace, claim.Name))
	}
	if pv != nil && pv.Spec.ClaimRef != nil {
		keys = append(keys, storeindex.Key(pv.Spec.ClaimRef.Namespace, pv.Spec.ClaimRef.Name))
	}
	return keys
}

// hasClaim reports whether a claim that the Pod names and the PersistentVolume are bound to each other. The claim
// of an ephemeral volume must be the Pod's own.
func hasClaim(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) bool {
	if claim == nil || pv == nil || pv.Spec.ClaimRef == nil || pv.Spec.ClaimRef.UID != claim.UID ||
		claim.Spec.VolumeName != pv.Name {
		return false
	}
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return podview.ClaimName(pod, &v) == claim.Name &&
			(v.PersistentVolumeClaim != nil || ephemeral.VolumeIsForPod(pod, claim) == nil)
	})
}

// attachmentsOf returns all attachments of a volume: those of its PersistentVolumes, and those whose
// PersistentVolume is gone.
func (s *stores) attachmentsOf(volume Volume, pvs []*corev1.PersistentVolume) []*storagev1.VolumeAttachment {
	var found []*storagev1.VolumeAttachment
	for _, pv := range pvs {
		found = append(found, storeindex.Find[storagev1.VolumeAttachment](s.attachments, attachmentsByPV, pv.Name)...)
	}
	for _, a := range storeindex.Find[storagev1.VolumeAttachment](s.attachments, attachmentsByDriver, volume.Driver) {
		if storeindex.Get[corev1.PersistentVolume](s.pvs, pvName(a)) == nil &&
			a.Name == volume.attachment(a.Spec.NodeName) {
			found = append(found, a)
		}
	}
	return found
}
