package podset

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"keelson.dev/services/workload-controllers/internal/selectors"
)

// Selections groups the Pods of an index by the label selectors of the objects of one kind, such as Services or
// PodDisruptionBudgets. It is safe for concurrent use.
type Selections struct {
	index     *Index
	by        int
	selectors *selectors.Index
}

// NewSelections adds the groups of one more kind to an index. They end with Close.
func NewSelections(index *Index) *Selections {
	index.mu.Lock()
	defer index.mu.Unlock()
	s := &Selections{index: index, by: bySelection, selectors: selectors.New()}
	for _, other := range index.selections {
		s.by = max(s.by, other.by+1)
	}
	index.selections = append(index.selections, s)
	return s
}

// Key names the Pods that an object's selector matches.
func (s *Selections) Key(namespace, name string) Key {
	return Key{by: s.by, namespace: namespace, name: name}
}

// Matching returns the names of the objects of the Pod's namespace whose selectors match it, sorted.
func (s *Selections) Matching(pod *corev1.Pod) []string {
	return s.selectors.Matching(pod.Namespace, pod.Labels)
}

// Concerned returns the names of the objects whose selectors match a Pod or matched it before it changed, sorted.
func (s *Selections) Concerned(pod *corev1.Pod, change Change) []string {
	names := s.Matching(pod)
	if last := change.Last; last != nil && !maps.Equal(last.Labels, pod.Labels) {
		names = append(names, s.Matching(last)...)
		slices.Sort(names)
		names = slices.Compact(names)
	}
	return names
}

// Put takes in an object's selector. All Pods of its namespace are gone through only when it is another than before.
func (s *Selections) Put(o metav1.Object, selector *metav1.LabelSelector) {
	s.index.mu.Lock()
	defer s.index.mu.Unlock()
	parsed, changed := s.selectors.Put(o, selector)
	if !changed {
		return
	}
	key := s.Key(o.GetNamespace(), o.GetName())
	s.index.dissolve(key)
	if namespace := s.index.groups[Namespace(o.GetNamespace())]; namespace != nil {
		for _, m := range namespace.members {
			if parsed.Matches(labels.Set(m.entry.pod.Labels)) {
				s.index.put(m.entry, key)
			}
		}
	}
}

// Remove forgets an object.
func (s *Selections) Remove(o metav1.Object) {
	s.index.mu.Lock()
	defer s.index.mu.Unlock()
	s.selectors.Remove(o)
	s.index.dissolve(s.Key(o.GetNamespace(), o.GetName()))
}

// Close takes all groups of the kind out of the index.
func (s *Selections) Close() {
	s.index.mu.Lock()
	defer s.index.mu.Unlock()
	s.index.selections = slices.DeleteFunc(s.index.selections, func(other *Selections) bool { return other == s })
	for key := range s.index.groups {
		if key.by == s.by {
			s.index.dissolve(key)
		}
	}
}

// dissolve removes a group that the Pods no longer refer to.
func (i *Index) dissolve(key Key) {
	g := i.groups[key]
	if g == nil {
		return
	}
	for _, m := range g.members {
		m.entry.groups = slices.DeleteFunc(m.entry.groups, func(other *group) bool { return other == g })
	}
	delete(i.groups, key)
}
