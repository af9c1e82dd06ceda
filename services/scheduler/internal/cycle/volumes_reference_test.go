package cycle_test

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// storage is what the slow scheduler knows of claims; all are of one namespace. It works everything out again for each
// node.
type storage struct {
	Claims  map[string]*corev1.PersistentVolumeClaim
	Volumes map[string]*corev1.PersistentVolume
	Classes map[string]*storagev1.StorageClass
	// What Pods on their way to a node are about to get: volumes by name and nodes by claim.
	PromisedVolumes, PromisedNodes map[string]string
	attachable
	capacities
}

func newStorage() storage {
	return storage{Claims: map[string]*corev1.PersistentVolumeClaim{}, Volumes: map[string]*corev1.PersistentVolume{},
		Classes: map[string]*storagev1.StorageClass{}, PromisedVolumes: map[string]string{},
		PromisedNodes: map[string]string{}, attachable: newAttachable(),
		capacities: newCapacities()}
}

const (
	wrongNode = "node(s) didn't match PersistentVolume's node affinity"
	noVolume  = "node(s) didn't find available persistent volumes to bind"
	noSuchPV  = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
	taken     = "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode"
)

func claimNames(p *corev1.Pod) (names []string) {
	for _, v := range p.Spec.Volumes {
		switch {
		case v.Ephemeral != nil:
			names = append(names, p.Name+"-"+v.Name)
		case v.PersistentVolumeClaim != nil && !slices.Contains(names, v.PersistentVolumeClaim.ClaimName):
			names = append(names, v.PersistentVolumeClaim.ClaimName)
		}
	}
	return names
}

// ownClaim reports whether the claim is made for a volume of the Pod.
func ownClaim(p *corev1.Pod, name string) bool {
	return slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool {
		return v.Ephemeral != nil && name == p.Name+"-"+v.Name
	})
}

// claimReasons says why the Pod cannot go to the node for its claims, and whether that comes before all other reasons.
func (c *cluster) claimReasons(p *corev1.Pod, n *corev1.Node) (reasons []string, first bool) {
	if len(claimNames(p)) == 0 {
		return nil, false
	}
	if why := c.blocked(p); why != "" {
		return []string{why}, true
	}
	first = !namedAffinity(p) || !c.filters("NodeAffinity")
	if users := c.usersOf(p); len(users) > 0 {
		if first && !slices.Contains(users, n.Name) {
			return []string{taken}, true
		}
		first = false
	}
	for _, name := range claimNames(p) {
		if claim := c.Claims[name]; claim.Spec.VolumeName != "" && c.Volumes[claim.Spec.VolumeName] == nil {
			return []string{noSuchPV}, first
		}
	}
	got := c.onNode(p, n)
	allowed, why, confined := c.confine(p)
	if first && confined && !allowed(n) {
		return []string{why}, first
	}
	if got.wrong {
		reasons = append(reasons, wrongNode)
	}
	if got.lacking != "" {
		reasons = append(reasons, got.lacking)
	}
	return reasons, first && confined && !c.tracks(p)
}

func (c *cluster) blocked(p *corev1.Pod) string {
	immediate := false
	for _, name := range claimNames(p) {
		claim := c.Claims[name]
		switch owned := ownClaim(p, name); {
		case claim == nil && owned:
			return fmt.Sprintf("waiting for ephemeral volume controller to create the persistentvolumeclaim %q", name)
		case claim == nil:
			return fmt.Sprintf("persistentvolumeclaim %q not found", name)
		case claim.Status.Phase == corev1.ClaimLost:
			return fmt.Sprintf("persistentvolumeclaim %q bound to non-existent persistentvolume %q", name,
				claim.Spec.VolumeName)
		case claim.DeletionTimestamp != nil:
			return fmt.Sprintf("persistentvolumeclaim %q is being deleted", name)
		case owned && (len(claim.OwnerReferences) == 0 || claim.OwnerReferences[0].UID != p.UID):
			return fmt.Sprintf("PVC default/%s was not created for pod default/%s (pod is not owner)", name, p.Name)
		case claim.Spec.VolumeName == "" && *claim.Spec.StorageClassName == "now",
			claim.Spec.VolumeName != "" && claim.Annotations["pv.kubernetes.io/bind-completed"] == "":
			immediate = true
		}
	}
	if immediate {
		return "pod has unbound immediate PersistentVolumeClaims"
	}
	return ""
}

// usersOf returns the nodes of other Pods that have a claim of the Pod that is for one Pod.
func (c *cluster) usersOf(p *corev1.Pod) (nodes []string) {
	if !c.filters("VolumeRestrictions") {
		return nil
	}
	for _, name := range claimNames(p) {
		if c.Claims[name] == nil || c.Claims[name].Spec.AccessModes[0] != corev1.ReadWriteOncePod {
			continue
		}
		for _, other := range c.Pods {
			if other.UID != p.UID && c.nominated[other.UID] == nil && slices.Contains(claimNames(other), name) {
				nodes = append(nodes, other.Spec.NodeName)
			}
		}
	}
	return nodes
}

// unbound returns the claims without a volume: those for which a node was chosen, then the smallest first.
func (c *cluster) unbound(p *corev1.Pod) (claims []*corev1.PersistentVolumeClaim) {
	for _, name := range claimNames(p) {
		if c.Claims[name].Spec.VolumeName == "" {
			claims = append(claims, c.Claims[name])
		}
	}
	slices.SortStableFunc(claims, func(a, b *corev1.PersistentVolumeClaim) int {
		chosenA, chosenB := c.chosen(a) != "", c.chosen(b) != ""
		switch {
		case chosenA && !chosenB:
			return -1
		case chosenB && !chosenA:
			return 1
		case chosenA:
			return 0
		}
		return a.Spec.Resources.Requests.Storage().Cmp(*b.Spec.Resources.Requests.Storage())
	})
	return claims
}

// gets is what the claims of a Pod without a volume get on a node: volumes, nil for those to be made, and why one gets
// nothing.
type gets struct {
	wrong   bool // a volume that a claim has cannot be used there
	lacking string
	claims  []*corev1.PersistentVolumeClaim
	volumes []*corev1.PersistentVolume
}

func (c *cluster) onNode(p *corev1.Pod, n *corev1.Node) (got gets) {
	for _, name := range claimNames(p) {
		if pv := c.Volumes[c.Claims[name].Spec.VolumeName]; pv != nil && !usableOn(pv, n) {
			got.wrong = true
		}
	}
	unbound := c.unbound(p)
	if slices.ContainsFunc(unbound, func(claim *corev1.PersistentVolumeClaim) bool {
		node := c.chosen(claim)
		return node != "" && node != n.Name
	}) {
		got.lacking = noVolume
	}
	used := map[string]bool{}
	for _, claim := range unbound {
		var found *corev1.PersistentVolume
		for _, pv := range c.candidates(claim) {
			if !used[pv.Name] && usableOn(pv, n) {
				used[pv.Name], found = true, pv
				break
			}
		}
		why := ""
		if found == nil && !c.makeable(claim, n) {
			why = noVolume
		} else if found == nil && !c.stored(claim, n) {
			why = noStorage
		}
		got.claims, got.volumes = append(got.claims, claim), append(got.volumes, found)
		got.lacking = cmp.Or(got.lacking, why)
	}
	return got
}

// chosen is the node that was chosen for a claim for which no volume is meant.
func (c *cluster) chosen(claim *corev1.PersistentVolumeClaim) string {
	if c.meant(claim) != nil {
		return ""
	}
	return c.promisedNode(claim)
}

// promisedNode is the node that was chosen for a claim.
func (c *cluster) promisedNode(claim *corev1.PersistentVolumeClaim) string {
	return cmp.Or(c.PromisedNodes[claim.Name], claim.Annotations["volume.kubernetes.io/selected-node"])
}

func (c *cluster) makeable(claim *corev1.PersistentVolumeClaim, n *corev1.Node) bool {
	if node := c.chosen(claim); node != "" && node != n.Name {
		return false
	}
	switch *claim.Spec.StorageClassName {
	case "wait":
		return c.meant(claim) == nil
	case "zoned":
		return c.meant(claim) == nil && (n.Labels["zone"] == "a" || n.Labels["zone"] == "b")
	}
	return false
}

// meant returns the volume that is for this claim and no other, if there is one.
func (c *cluster) meant(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	for _, pv := range c.Volumes {
		promised, ok := c.PromisedVolumes[pv.Name]
		if !ok && pv.Spec.ClaimRef != nil {
			promised, ok = pv.Spec.ClaimRef.Name, true
		}
		if ok && promised == claim.Name && available(pv, claim) {
			return pv
		}
	}
	return nil
}

// available reports whether a volume that is free would do for the claim.
func available(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	return pv.Status.Phase == corev1.VolumeAvailable && pv.Spec.StorageClassName == *claim.Spec.StorageClassName &&
		pv.Spec.Capacity.Storage().Cmp(*claim.Spec.Resources.Requests.Storage()) >= 0 &&
		slices.Contains(pv.Spec.AccessModes, claim.Spec.AccessModes[0])
}

func (c *cluster) candidates(claim *corev1.PersistentVolumeClaim) (found []*corev1.PersistentVolume) {
	if pv := c.meant(claim); pv != nil {
		return []*corev1.PersistentVolume{pv}
	}
	if c.promisedNode(claim) != "" {
		return nil
	}
	for _, pv := range c.Volumes {
		if _, promised := c.PromisedVolumes[pv.Name]; !promised && pv.Spec.ClaimRef == nil && available(pv, claim) {
			found = append(found, pv)
		}
	}
	slices.SortFunc(found, func(a, b *corev1.PersistentVolume) int {
		return cmp.Or(a.Spec.Capacity.Storage().Cmp(*b.Spec.Capacity.Storage()), cmp.Compare(a.Name, b.Name))
	})
	return found
}

func usableOn(pv *corev1.PersistentVolume, n *corev1.Node) bool {
	return pv.Spec.NodeAffinity == nil || slices.ContainsFunc(pv.Spec.NodeAffinity.Required.NodeSelectorTerms,
		func(t corev1.NodeSelectorTerm) bool { return termMatches(t, n) })
}

// hostsOf returns the hostnames to which a volume is confined.
func hostsOf(pv *corev1.PersistentVolume) ([]string, bool) {
	if pv.Spec.NodeAffinity == nil {
		return nil, false
	}
	r := pv.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0]
	return r.Values, r.Key == corev1.LabelHostname
}

// confine says which nodes the first claim leaves that leaves few by name, in the order in which volumes are chosen.
func (c *cluster) confine(p *corev1.Pod) (allowed func(*corev1.Node) bool, why string, ok bool) {
	type claim = *corev1.PersistentVolumeClaim
	var all []claim
	for _, name := range claimNames(p) {
		if c.Claims[name].Spec.VolumeName != "" {
			all = append(all, c.Claims[name])
		}
	}
	among := func(hosts []string) func(*corev1.Node) bool {
		return func(n *corev1.Node) bool { return slices.Contains(hosts, n.Labels[corev1.LabelHostname]) }
	}
	for _, claim := range append(all, c.unbound(p)...) {
		if pv := c.Volumes[claim.Spec.VolumeName]; pv != nil {
			if hosts, ok := hostsOf(pv); ok {
				return among(hosts), wrongNode, true
			}
			continue
		}
		if node := c.chosen(claim); node != "" {
			return func(n *corev1.Node) bool { return n.Name == node }, noVolume, true
		}
		if *claim.Spec.StorageClassName != "static" && c.meant(claim) == nil {
			continue
		}
		var hosts []string
		confined := true
		for _, pv := range c.candidates(claim) {
			some, ok := hostsOf(pv)
			hosts, confined = append(hosts, some...), confined && ok
		}
		if confined {
			return among(hosts), noVolume, true
		}
	}
	return nil, "", false
}

// namedAffinity reports whether the Pod confines itself by name, which comes before its claims.
func namedAffinity(p *corev1.Pod) bool {
	if _, ok := p.Spec.NodeSelector[corev1.LabelHostname]; ok {
		return true
	}
	a := p.Spec.Affinity
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return false
	}
	for _, t := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		in := func(r corev1.NodeSelectorRequirement) bool {
			return r.Operator == corev1.NodeSelectorOpIn && (r.Key == corev1.LabelHostname || r.Key == "metadata.name")
		}
		if len(t.MatchExpressions)+len(t.MatchFields) > 0 && !slices.ContainsFunc(t.MatchExpressions, in) &&
			!slices.ContainsFunc(t.MatchFields, in) {
			return false
		}
	}
	return true
}
