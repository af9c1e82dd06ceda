package volumes

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Wait notes a Pod without a node, so that what becomes of its claims makes it stale.
func (b *Book) Wait(p *corev1.Pod) {
	if known := b.note(p); known != nil {
		for _, name := range known.claims {
			add(b.named, name, p.UID)
			b.leave(name, p.UID)
		}
		known.node = ""
		b.recount(p.UID)
	}
}

// Use notes a Pod that has a node.
func (b *Book) Use(p *corev1.Pod, node string) {
	if known := b.note(p); known != nil {
		known.node = node
		b.recount(p.UID)
		for _, name := range known.claims {
			if !b.users[name][p.UID] {
				add(b.users, name, p.UID)
				b.touchSingle(name)
			}
		}
	}
}

// Forget forgets a Pod, or what it was when it was another.
func (b *Book) Forget(uid types.UID) {
	known := b.pods[uid]
	if known == nil {
		return
	}
	b.Release(uid)
	for _, name := range known.claims {
		drop(b.named, name, uid)
		b.leave(name, uid)
	}
	b.count(uid, known, -1)
	delete(b.pods, uid)
	delete(b.stale, uid)
}

// leave notes that a Pod does not use a claim.
func (b *Book) leave(name types.NamespacedName, uid types.UID) {
	if b.users[name][uid] {
		drop(b.users, name, uid)
		b.touchSingle(name)
	}
}

// touchSingle makes the Pods stale that wait for the end of another.
func (b *Book) touchSingle(name types.NamespacedName) {
	if claim := b.claims[name]; claim != nil && single(claim) {
		b.touchClaim(name)
	}
}

func (b *Book) note(p *corev1.Pod) *pod {
	known := b.pods[p.UID]
	if known != nil {
		return known
	}
	refs := references(p)
	if len(refs) == 0 {
		return nil
	}
	known = &pod{}
	for _, ref := range refs {
		if !slices.Contains(known.claims, ref.name) {
			known.claims = append(known.claims, ref.name)
		}
	}
	b.pods[p.UID] = known
	return known
}

// User is a Pod that has a node, and a claim that is for one Pod.
type User struct {
	UID  types.UID
	Node string
}

// usersBeside returns the other Pods that have a claim, where that is for one Pod.
func (b *Book) usersBeside(uid types.UID, claim *corev1.PersistentVolumeClaim) (users []User) {
	if !single(claim) {
		return nil
	}
	for user := range b.users[nameOf(claim)] {
		if user != uid {
			users = append(users, User{UID: user, Node: b.pods[user].node})
		}
	}
	return users
}

func single(claim *corev1.PersistentVolumeClaim) bool {
	return slices.Contains(claim.Spec.AccessModes, corev1.ReadWriteOncePod)
}

func add[K comparable](index map[K]map[types.UID]bool, key K, uid types.UID) {
	if index[key] == nil {
		index[key] = map[types.UID]bool{}
	}
	index[key][uid] = true
}

func drop[K comparable](index map[K]map[types.UID]bool, key K, uid types.UID) {
	if delete(index[key], uid); len(index[key]) == 0 {
		delete(index, key)
	}
}
