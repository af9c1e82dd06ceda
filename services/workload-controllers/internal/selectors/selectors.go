// Package selectors finds the objects whose label selectors match something, without reading each selector again. It
// is pure.
//
//keelson:decision
package selectors

import (
	"slices"
	"sync"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// Index holds the selectors of objects, by namespace and, where a selector demands a label with one value, by such a
// label. It is safe for concurrent use.
type Index struct {
	mu      sync.Mutex // guards what follows
	entries map[object]entry
	buckets map[bucket]map[string]labels.Selector // by the objects' names
}

type object struct{ namespace, name string }

// bucket is a namespace and a label that selectors in it demand; those that demand none are in the one without.
type bucket struct{ namespace, key, value string }

type entry struct {
	uid        types.UID
	generation int64
	selector   *metav1.LabelSelector // as the object has it; shared and never changed
	in         bucket
}

// isOf reports whether the entry is of this selector of the object. Some kinds count no generations.
func (e entry) isOf(o metav1.Object, selector *metav1.LabelSelector) bool {
	if e.generation != 0 && e.generation == o.GetGeneration() && e.uid == o.GetUID() {
		return true
	}
	return apiequality.Semantic.DeepEqual(e.selector, selector)
}

// New returns an empty index.
func New() *Index {
	return &Index{entries: map[object]entry{}, buckets: map[bucket]map[string]labels.Selector{}}
}

// Put takes in an object's selector, and returns it read and whether it is another than before. One that is as before
// is not read again; one that cannot be read matches nothing.
func (i *Index) Put(o metav1.Object, selector *metav1.LabelSelector) (read labels.Selector, changed bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	key := object{o.GetNamespace(), o.GetName()}
	last, ok := i.entries[key]
	if ok && last.isOf(o, selector) {
		last.uid, last.generation = o.GetUID(), o.GetGeneration()
		i.entries[key] = last
		return i.buckets[last.in][key.name], false
	}
	i.drop(key)
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return labels.Nothing(), true
	}
	in := bucket{namespace: key.namespace}
	if selector != nil && len(selector.MatchLabels) > 0 {
		// Any will do; always the same one is easier to follow.
		in.key = slices.Min(keys(selector.MatchLabels))
		in.value = selector.MatchLabels[in.key]
	}
	if i.buckets[in] == nil {
		i.buckets[in] = map[string]labels.Selector{}
	}
	i.buckets[in][key.name] = parsed
	i.entries[key] = entry{uid: o.GetUID(), generation: o.GetGeneration(), selector: selector, in: in}
	return parsed, true
}

// Remove forgets an object.
func (i *Index) Remove(o metav1.Object) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.drop(object{o.GetNamespace(), o.GetName()})
}

// Matching returns the names of the objects in the namespace whose selectors match, sorted.
func (i *Index) Matching(namespace string, set labels.Set) []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	var names []string
	look := func(in bucket) {
		for name, selector := range i.buckets[in] {
			if selector.Matches(set) {
				names = append(names, name)
			}
		}
	}
	look(bucket{namespace: namespace})
	for key, value := range set {
		look(bucket{namespace, key, value})
	}
	slices.Sort(names)
	return names
}

func (i *Index) drop(key object) {
	last, ok := i.entries[key]
	if !ok {
		return
	}
	delete(i.entries, key)
	delete(i.buckets[last.in], key.name)
	if len(i.buckets[last.in]) == 0 {
		delete(i.buckets, last.in)
	}
}

func keys(m map[string]string) []string {
	all := make([]string, 0, len(m))
	for key := range m {
		all = append(all, key)
	}
	return all
}
