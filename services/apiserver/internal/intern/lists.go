package intern

import (
	"hash/maphash"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// metaLists shares the lists of an object's metadata, whose parts were shared before.
func (p *Pool) metaLists(m *metav1.ObjectMeta) {
	m.ManagedFields = shared(&p.managers, m.ManagedFields, p.hashOfManagers, sameManager)
	m.OwnerReferences = shared(&p.owners, m.OwnerReferences, p.hashOfOwners, sameOwner)
}

// podLists shares the lists of a Pod, whose parts were shared before.
func (p *Pool) podLists(o *corev1.Pod) {
	spec := &o.Spec
	spec.InitContainers = shared(&p.containers, spec.InitContainers, p.hashOfContainers, deepEqual)
	spec.Containers = shared(&p.containers, spec.Containers, p.hashOfContainers, deepEqual)
	spec.Volumes = shared(&p.volumes, spec.Volumes, p.hashOfVolumes, deepEqual)
	if c := spec.SecurityContext; c != nil {
		spec.SecurityContext = p.security.one(c, p.hashOfSecurity(c),
			func(a, b *corev1.PodSecurityContext) bool { return deepEqual(a, b) })
	}
	o.Status.Conditions = shared(&p.conditions, o.Status.Conditions, p.hashOfConditions, sameCondition)
}

// shared returns an equal list that others may have as well. The hash tells lists apart that are likely to differ; what
// it leaves out only costs the memory of those that take a slot from each other.
func shared[E any](t *table[[]E], list []E, hash func([]E) uint64, same func(a, b *E) bool) []E {
	if len(list) == 0 {
		return list
	}
	return t.one(list, hash(list), func(a, b []E) bool {
		if len(a) != len(b) {
			return false
		}
		for i := range a {
			if !same(&a[i], &b[i]) {
				return false
			}
		}
		return true
	})
}

// deepEqual looks at every field of what a release of the API may extend.
func deepEqual[V any](a, b *V) bool { return reflect.DeepEqual(a, b) }

// sameCondition tells conditions apart by all that they hold, for they are comparable.
func sameCondition(a, b *corev1.PodCondition) bool { return *a == *b }

func sameOwner(a, b *metav1.OwnerReference) bool {
	x, y := *a, *b
	x.Controller, x.BlockOwnerDeletion, y.Controller, y.BlockOwnerDeletion = nil, nil, nil, nil
	return x == y && samePointed(a.Controller, b.Controller) && samePointed(a.BlockOwnerDeletion, b.BlockOwnerDeletion)
}

// sameManager takes field sets for equal that lie at one address, as equal ones mostly do.
func sameManager(a, b *metav1.ManagedFieldsEntry) bool {
	x, y := *a, *b
	x.Time, y.Time = nil, nil
	return x == y && samePointed(a.Time, b.Time)
}

// samePointed compares what is pointed at.
func samePointed[V comparable](a, b *V) bool { return a == b || a != nil && b != nil && *a == *b }

// join adds what is comparable to the hash of what was before it.
func join[C comparable](p *Pool, before uint64, part C) uint64 {
	return before*31 + maphash.Comparable(p.seed, part)
}

func (p *Pool) hashOfOwners(list []metav1.OwnerReference) (hash uint64) {
	for i := range list {
		hash = join(p, hash, list[i].UID)
	}
	return hash
}

func (p *Pool) hashOfManagers(list []metav1.ManagedFieldsEntry) (hash uint64) {
	for i := range list {
		// Field sets are interned, so that equal ones mostly lie at one address.
		hash = join(p, hash, list[i].FieldsV1)
		if at := list[i].Time; at != nil {
			hash = join(p, hash, at.Unix())
		}
	}
	return hash
}

func (p *Pool) hashOfContainers(list []corev1.Container) (hash uint64) {
	for i := range list {
		c := &list[i]
		hash = join(p, hash, [2]string{c.Name, c.Image})
		for j := range c.VolumeMounts {
			hash = join(p, hash, c.VolumeMounts[j].Name)
		}
	}
	return hash
}

func (p *Pool) hashOfSecurity(c *corev1.PodSecurityContext) (hash uint64) {
	for _, id := range []*int64{c.RunAsUser, c.RunAsGroup, c.FSGroup} {
		if id != nil {
			hash = join(p, hash, *id)
		}
	}
	return hash
}

func (p *Pool) hashOfVolumes(list []corev1.Volume) (hash uint64) {
	for i := range list {
		hash = join(p, hash, list[i].Name)
	}
	return hash
}

func (p *Pool) hashOfConditions(list []corev1.PodCondition) (hash uint64) {
	for i := range list {
		hash = join(p, hash, list[i].LastTransitionTime.Unix())
	}
	return hash
}
