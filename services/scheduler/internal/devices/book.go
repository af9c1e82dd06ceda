// Package devices says what keeps Pods that claim devices from having them. It knows the ResourceClaims of the cluster
// and which Pods wait for which of them. No controller allocates claims here, nor does a node prepare devices, so
// something keeps every such Pod.
//
// The package is pure, and one goroutine owns a Book.
//
//keelson:decision
package devices

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/podview"
)

// Book holds all that Pods wait for. Make one with New.
type Book struct {
	claims map[types.NamespacedName]*resourcev1.ResourceClaim
	pods   map[types.UID][]types.NamespacedName        // the claims of Pods that wait
	waits  map[types.NamespacedName]map[types.UID]bool // Pods that wait, by claim
	stale  map[types.UID]bool
}

// New returns an empty Book.
func New() *Book {
	return &Book{claims: map[types.NamespacedName]*resourcev1.ResourceClaim{},
		pods:  map[types.UID][]types.NamespacedName{},
		waits: map[types.NamespacedName]map[types.UID]bool{}, stale: map[types.UID]bool{}}
}

// SetClaim notes a claim that is new or changed.
func (b *Book) SetClaim(claim *resourcev1.ResourceClaim) {
	name := types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}
	b.claims[name] = claim
	b.touch(name)
}

// RemoveClaim notes that a claim is gone.
func (b *Book) RemoveClaim(claim *resourcev1.ResourceClaim) {
	name := types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}
	delete(b.claims, name)
	b.touch(name)
}

func (b *Book) touch(name types.NamespacedName) {
	for uid := range b.waits[name] {
		b.stale[uid] = true
	}
}

// Wait notes a Pod without a node as it is now, so that what becomes of its claims makes it stale.
func (b *Book) Wait(p *corev1.Pod) {
	claims := claimsOf(p)
	if slices.Equal(claims, b.pods[p.UID]) {
		return
	}
	b.Forget(p.UID)
	if len(claims) == 0 {
		return
	}
	b.pods[p.UID] = claims
	for _, name := range claims {
		if b.waits[name] == nil {
			b.waits[name] = map[types.UID]bool{}
		}
		b.waits[name][p.UID] = true
	}
}

// Forget forgets a Pod, which waits no more.
func (b *Book) Forget(uid types.UID) {
	for _, name := range b.pods[uid] {
		if delete(b.waits[name], uid); len(b.waits[name]) == 0 {
			delete(b.waits, name)
		}
	}
	delete(b.pods, uid)
	delete(b.stale, uid)
}

// TakeStale returns the Pods of which something else may be true than at the last call.
func (b *Book) TakeStale() []types.UID {
	stale := slices.Collect(maps.Keys(b.stale))
	clear(b.stale)
	return stale
}

// claimsOf are the ResourceClaims of a Pod that are known, in its order.
func claimsOf(p *corev1.Pod) []types.NamespacedName {
	var names []types.NamespacedName
	for i := range p.Spec.ResourceClaims {
		if name, known := podview.ResourceClaimOf(p, &p.Spec.ResourceClaims[i]); known && name != "" {
			names = append(names, types.NamespacedName{Namespace: p.Namespace, Name: name})
		}
	}
	return names
}
