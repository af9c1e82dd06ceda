package cycle_test

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// attachable is what the slow scheduler knows of volumes on nodes.
type attachable struct {
	Limits      map[string]map[string]int32 // by node and driver
	Installed   map[string][]string         // drivers by node
	Required    map[string]bool             // drivers that must be there
	Attachments map[string]*storagev1.VolumeAttachment
}

func newAttachable() attachable {
	return attachable{Limits: map[string]map[string]int32{}, Installed: map[string][]string{},
		Required: map[string]bool{}, Attachments: map[string]*storagev1.VolumeAttachment{}}
}

const exceeds = "node(s) exceed max volume count"

// identities returns the drivers of the volumes of a Pod, by what distinguishes the volumes.
func (c *cluster) identities(p *corev1.Pod) map[string]string {
	out := map[string]string{}
	for _, name := range claimNames(p) {
		claim := c.Claims[name]
		if claim == nil {
			continue
		}
		if pv := c.Volumes[claim.Spec.VolumeName]; pv != nil {
			if csi := pv.Spec.CSI; csi != nil {
				out[csi.Driver+"/"+csi.VolumeHandle] = csi.Driver
			}
			continue
		}
		if class := c.Classes[*claim.Spec.StorageClassName]; class != nil {
			out["claim "+name] = class.Provisioner
		}
	}
	return out
}

// uninstalled says which driver of the Pod's volumes is not on the node though it must be.
func (c *cluster) uninstalled(p *corev1.Pod, n *corev1.Node) string {
	for _, driver := range slices.Sorted(maps.Values(c.identities(p))) {
		if c.Required[driver] && !slices.Contains(c.Installed[n.Name], driver) {
			return driver + " CSI driver is not installed on the node"
		}
	}
	return ""
}

// exceeded reports whether the Pod would bring more volumes to the node than it takes.
func (c *cluster) exceeded(p *corev1.Pod, n *corev1.Node) bool {
	there := map[string]string{}
	for _, other := range c.taking(n) {
		for id, driver := range c.identities(other) {
			there[id] = driver
		}
	}
	for _, a := range c.Attachments {
		pv := c.Volumes[*a.Spec.Source.PersistentVolumeName]
		if a.Spec.NodeName == n.Name && pv != nil && pv.Spec.CSI != nil {
			there[a.Spec.Attacher+"/"+pv.Spec.CSI.VolumeHandle] = a.Spec.Attacher
		}
	}
	used, more := map[string]int32{}, map[string]int32{}
	for _, driver := range there {
		used[driver]++
	}
	for id, driver := range c.identities(p) {
		if there[id] == "" {
			more[driver]++
		}
	}
	for driver, count := range more {
		if most, limited := c.Limits[n.Name][driver]; limited && used[driver]+count > most {
			return true
		}
	}
	return false
}

// inZones reports whether the node is where the labels of the Pod's volumes say.
func (c *cluster) inZones(p *corev1.Pod, n *corev1.Node) bool {
	const zone, region = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
	const oldZone, oldRegion = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"
	labelled := false
	for _, key := range []string{zone, region, oldZone, oldRegion} {
		_, has := n.Labels[key]
		labelled = labelled || has
	}
	if !labelled {
		return true
	}
	for _, name := range claimNames(p) {
		pv := c.Volumes[c.Claims[name].Spec.VolumeName]
		if pv == nil || ownClaim(p, name) {
			continue
		}
		for _, keys := range [][]string{{zone, zone}, {region, region}, {oldZone, zone}, {oldRegion, region}} {
			value, asked := pv.Labels[keys[0]]
			have, has := n.Labels[keys[0]]
			if !has {
				have, has = n.Labels[keys[1]]
			}
			if asked && (!has || !strings.Contains("__"+value+"__", "__"+have+"__")) {
				return false
			}
		}
	}
	return true
}
