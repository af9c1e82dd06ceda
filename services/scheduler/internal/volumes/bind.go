package volumes

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Step is what one claim of a Pod that was given a node gets. The objects must not be changed.
type Step struct {
	Claim *corev1.PersistentVolumeClaim
	// Volume is the one that it gets; nil when one is to be made for the node.
	Volume *corev1.PersistentVolume
	Node   string
}

// same reports whether another step promises the same to the same claim: the volume, or the node where there is none.
func (s Step) same(other Step) bool {
	if s.Claim.UID != other.Claim.UID || (s.Volume == nil) != (other.Volume == nil) {
		return false
	}
	if s.Volume == nil {
		return s.Node == other.Node
	}
	return s.Volume.Name == other.Volume.Name
}

// Done reports whether the API says so already.
func (s Step) Done() bool {
	if s.Volume != nil {
		ref := s.Volume.Spec.ClaimRef
		return ref != nil && ref.UID == s.Claim.UID
	}
	return s.Claim.Annotations[SelectedNode] == s.Node
}

// Assume chooses for the claims of a Pod that is given a node, and keeps what it chooses from others until Release. It
// returns nothing when all claims have their volumes.
func (b *Book) Assume(p *corev1.Pod, node *corev1.Node) []Step {
	d := b.Demand(p)
	if d == nil || !d.Unbound() {
		return nil
	}
	known := b.pods[p.UID]
	for _, pick := range d.Plan(node, nil).Picks {
		step := Step{Claim: b.claims[pick.Need.Claim], Node: node.Name}
		if pick.Volume == nil {
			b.assumedNodes[pick.Need.Claim] = node.Name
		} else {
			step.Volume = pick.Volume.PersistentVolume
			b.assumedVolumes[pick.Volume.Name] = pick.Need.Claim
			b.touchVolume(pick.Volume)
		}
		known.assumed = append(known.assumed, step)
		b.touchClaim(pick.Need.Claim)
	}
	return known.assumed
}

// Release gives back what was chosen for the claims of a Pod.
func (b *Book) Release(uid types.UID) {
	known := b.pods[uid]
	if known == nil {
		return
	}
	steps := known.assumed
	known.assumed = nil
	for _, step := range steps {
		name := nameOf(step.Claim)
		if b.assumedByAnother(step) {
			continue
		}
		if step.Volume == nil {
			delete(b.assumedNodes, name)
		} else {
			delete(b.assumedVolumes, step.Volume.Name)
			b.touchVolume(b.volumes[step.Volume.Name])
		}
		b.touchClaim(name)
	}
}

// assumedByAnother reports whether another Pod that has the same claim waits for the same.
func (b *Book) assumedByAnother(step Step) bool {
	for uid := range b.named[nameOf(step.Claim)] {
		if slices.ContainsFunc(b.pods[uid].assumed, func(other Step) bool {
			return other.same(step)
		}) {
			return true
		}
	}
	return false
}

// Check reports whether all claims of a Pod with a node have their volumes, and returns as an error what makes the wait
// for them vain.
func (b *Book) Check(p *corev1.Pod, node *corev1.Node) (done bool, err error) {
	done = true
	for _, step := range b.assumedOf(p.UID) {
		bound, err := b.check(step, node)
		if err != nil {
			return false, err
		}
		done = done && bound
	}
	return done, nil
}

// Waiting returns the names of the claims of a Pod that have no volume yet.
func (b *Book) Waiting(p *corev1.Pod) (names []string) {
	for _, step := range b.assumedOf(p.UID) {
		if claim := b.claims[nameOf(step.Claim)]; claim == nil || !fullyBound(claim) {
			names = append(names, step.Claim.Name)
		}
	}
	return names
}

func (b *Book) assumedOf(uid types.UID) []Step {
	if known := b.pods[uid]; known != nil {
		return known.assumed
	}
	return nil
}

func (b *Book) check(step Step, node *corev1.Node) (bool, error) {
	name := step.Claim.Name
	claim := b.claims[nameOf(step.Claim)]
	if claim == nil || claim.UID != step.Claim.UID || claim.DeletionTimestamp != nil {
		return false, fmt.Errorf("persistentvolumeclaim %q has been deleted", name)
	}
	if claim.Spec.VolumeName == "" {
		return false, b.vain(step, claim)
	}
	v := b.volumes[claim.Spec.VolumeName]
	if v == nil || v.Spec.ClaimRef == nil || v.Spec.ClaimRef.UID != claim.UID {
		return false, nil // one of the two watches is behind
	}
	if !v.allows(node) {
		return false, fmt.Errorf("persistentvolume %q, which persistentvolumeclaim %q got, cannot be used on node %s",
			v.Name, name, step.Node)
	}
	return fullyBound(claim), nil
}

// vain says why a claim that has no volume will get none of what was chosen for it.
func (b *Book) vain(step Step, claim *corev1.PersistentVolumeClaim) error {
	if v := step.Volume; v != nil {
		now := b.volumes[v.Name]
		if now == nil || now.UID != v.UID || now.Spec.ClaimRef == nil || now.Spec.ClaimRef.UID != claim.UID {
			return fmt.Errorf("persistentvolume %q is no longer reserved for persistentvolumeclaim %q", v.Name,
				claim.Name)
		}
		return nil
	}
	if selected := claim.Annotations[SelectedNode]; selected != step.Node {
		return fmt.Errorf("provisioning failed for persistentvolumeclaim %q: its annotation %s is %q, it was %q",
			claim.Name, SelectedNode, selected, step.Node)
	}
	return nil
}
