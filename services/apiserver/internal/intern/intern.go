// Package intern keeps one copy of what many objects have alike, such as the labels and requests of the Pods of one
// template or what the nodes of one size offer. Objects that are given to it share memory with others from then on, so
// their content must not change: no code changes the objects of watch caches.
//
//	intern.go  what is remembered, and the parts of objects
//	lists.go   whole lists of parts
package intern

import (
	"hash/maphash"
	"maps"
	"slices"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// slots is how many values a table remembers: more than a mesh has templates, little enough to be forgotten about.
const slots = 1024

// largest is the encoded size in bytes of the largest objects whose lists are remembered: a table holds what it
// remembers even after the last object is gone, and large objects are seldom alike.
const largest = 16 << 10

// table remembers the value that came last of each slot. A value that came before in a slot only costs its memory. It
// is safe for concurrent use.
type table[V any] [slots]atomic.Pointer[V]

// one returns the value that is remembered if it equals v, else v, which is remembered now.
func (t *table[V]) one(v V, hash uint64, equal func(a, b V) bool) V {
	slot := &t[hash%slots]
	if known := slot.Load(); known != nil && equal(*known, v) {
		return *known
	}
	kept := v // of its own, so that only what is remembered goes to the heap
	slot.Store(&kept)
	return v
}

// Pool remembers what objects had alike. Make one with New.
type Pool struct {
	seed        maphash.Seed
	lists       table[corev1.ResourceList]
	labels      table[map[string]string]
	fields      table[*metav1.FieldsV1]
	tolerations table[[]corev1.Toleration]
	texts       table[string]

	owners     table[[]metav1.OwnerReference]
	managers   table[[]metav1.ManagedFieldsEntry]
	containers table[[]corev1.Container]
	volumes    table[[]corev1.Volume]
	security   table[*corev1.PodSecurityContext]
	conditions table[[]corev1.PodCondition]
}

// New returns an empty Pool.
func New() *Pool { return &Pool{seed: maphash.MakeSeed()} }

// Object lets an object, which was decoded from so many bytes and is not in use yet, share what others have alike.
func (p *Pool) Object(object runtime.Object, size int) {
	if o, ok := object.(metav1.ObjectMetaAccessor); ok {
		if m, ok := o.GetObjectMeta().(*metav1.ObjectMeta); ok {
			p.meta(m)
			if size <= largest {
				p.metaLists(m)
			}
		}
	}
	switch o := object.(type) {
	case *corev1.Pod:
		p.pod(o)
		if size <= largest {
			p.podLists(o)
		}
	case *corev1.Node:
		p.node(&o.Status)
	}
}

func (p *Pool) meta(m *metav1.ObjectMeta) {
	m.Labels = p.strings(m.Labels)
	text(p, &m.Namespace)
	for i := range m.ManagedFields {
		e := &m.ManagedFields[i]
		text(p, &e.Manager, &e.APIVersion, &e.FieldsType, &e.Subresource)
		text(p, &e.Operation)
		e.FieldsV1 = p.fieldSet(e.FieldsV1)
	}
}

func (p *Pool) node(s *corev1.NodeStatus) {
	s.Capacity, s.Allocatable = p.Resources(s.Capacity), p.Resources(s.Allocatable)
	for i := range s.Conditions {
		c := &s.Conditions[i]
		text(p, &c.Reason, &c.Message)
		text(p, &c.Type)
		text(p, &c.Status)
	}
	n := &s.NodeInfo
	text(p, &n.KernelVersion, &n.OSImage, &n.ContainerRuntimeVersion, &n.KubeletVersion, &n.OperatingSystem,
		&n.Architecture)
}

func (p *Pool) pod(o *corev1.Pod) {
	spec, status := &o.Spec, &o.Status
	spec.NodeSelector, spec.Tolerations = p.strings(spec.NodeSelector), p.tolerated(spec.Tolerations)
	text(p, &spec.ServiceAccountName, &spec.DeprecatedServiceAccount, &spec.SchedulerName, &spec.PriorityClassName)
	text(p, &spec.RestartPolicy)
	text(p, &spec.DNSPolicy)
	p.containersOf(spec.InitContainers)
	p.containersOf(spec.Containers)
	text(p, &status.Phase)
	text(p, &status.QOSClass)
	for i := range status.Conditions {
		text(p, &status.Conditions[i].Type)
		text(p, &status.Conditions[i].Status)
	}
	p.statuses(status.InitContainerStatuses)
	p.statuses(status.ContainerStatuses)
}

func (p *Pool) containersOf(list []corev1.Container) {
	for i := range list {
		c := &list[i]
		text(p, &c.Name, &c.Image, &c.TerminationMessagePath)
		text(p, &c.TerminationMessagePolicy)
		text(p, &c.ImagePullPolicy)
		p.requirements(&c.Resources)
	}
}

func (p *Pool) statuses(list []corev1.ContainerStatus) {
	for i := range list {
		c := &list[i]
		text(p, &c.Name, &c.Image, &c.ImageID)
		c.AllocatedResources = p.Resources(c.AllocatedResources)
		if c.Resources != nil {
			p.requirements(c.Resources)
		}
	}
}

func (p *Pool) requirements(r *corev1.ResourceRequirements) {
	r.Requests, r.Limits = p.Resources(r.Requests), p.Resources(r.Limits)
}

// Resources returns an equal list that others may have as well.
func (p *Pool) Resources(list corev1.ResourceList) corev1.ResourceList {
	if len(list) == 0 {
		return list
	}
	type entry struct {
		name     corev1.ResourceName
		quantity resource.Quantity
	}
	hash := uint64(0) // of entries in any order
	for name, quantity := range list {
		hash += maphash.Comparable(p.seed, entry{name, quantity})
	}
	return p.lists.one(list, hash, maps.Equal)
}

func (p *Pool) strings(set map[string]string) map[string]string {
	if len(set) == 0 {
		return set
	}
	hash := uint64(0)
	for key, value := range set {
		hash += maphash.Comparable(p.seed, [2]string{key, value})
	}
	return p.labels.one(set, hash, maps.Equal)
}

// text replaces strings by equal ones.
func text[S ~string](p *Pool, all ...*S) {
	for _, s := range all {
		if *s != "" {
			*s = S(p.texts.one(string(*s), maphash.String(p.seed, string(*s)), equal))
		}
	}
}

func equal(a, b string) bool { return a == b }

func (p *Pool) fieldSet(f *metav1.FieldsV1) *metav1.FieldsV1 {
	if f == nil {
		return nil
	}
	return p.fields.one(f, maphash.Bytes(p.seed, f.GetRawBytes()),
		func(a, b *metav1.FieldsV1) bool { return a.Equal(*b) })
}

func (p *Pool) tolerated(list []corev1.Toleration) []corev1.Toleration {
	if len(list) == 0 {
		return list
	}
	hash := uint64(len(list))
	for i := range list {
		hash = hash<<1 + maphash.String(p.seed, list[i].Key)
	}
	return p.tolerations.one(list, hash, func(a, b []corev1.Toleration) bool {
		return slices.EqualFunc(a, b, sameToleration)
	})
}

func sameToleration(a, b corev1.Toleration) bool {
	if (a.TolerationSeconds == nil) != (b.TolerationSeconds == nil) ||
		a.TolerationSeconds != nil && *a.TolerationSeconds != *b.TolerationSeconds {
		return false
	}
	a.TolerationSeconds, b.TolerationSeconds = nil, nil
	return a == b
}
