package columns

import (
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/labels"
)

// NamespaceSet is namespaces by name and by their labels.
type NamespaceSet struct {
	Names []string
	// Selector is nil where no further namespaces belong to the set.
	Selector labels.Selector
}

func (n *NamespaceSet) has(name string, of labels.Set) bool {
	return slices.Contains(n.Names, name) || n.Selector != nil && n.Selector.Matches(of)
}

// appendKey appends what is equal for equal sets.
func (n *NamespaceSet) appendKey(b []byte) []byte {
	b = append(b, '[')
	for _, name := range n.Names {
		b = strconv.AppendQuote(b, name)
	}
	if n.Selector != nil {
		b = strconv.AppendQuote(append(b, ':'), n.Selector.String())
		if _, selectable := n.Selector.Requirements(); !selectable {
			b = append(b, '!')
		}
	}
	return append(b, ']')
}

// SetNamespace notes the labels of a namespace, none where it is gone, and reports whether a term selects other Pods of
// it now.
func (s *State) SetNamespace(name string, of labels.Set) bool {
	before := s.terms.namespaces[name]
	if labels.Equals(before, of) {
		return false
	}
	var changed []*Term
	for _, t := range s.terms.byKey {
		if t.inNamespace(name, before) != t.inNamespace(name, of) {
			changed, t.awaited = append(changed, t), nil
		}
	}
	if len(changed) > 0 {
		s.countNamespace(name, changed, -1)
	}
	if len(of) == 0 {
		delete(s.terms.namespaces, name)
	} else {
		s.terms.namespaces[name] = of
	}
	if len(changed) > 0 {
		s.countNamespace(name, changed, 1)
	}
	return len(changed) > 0
}

// countNamespace adds or takes back the Pods of a namespace that the terms select.
func (s *State) countNamespace(name string, terms []*Term, by int32) {
	for _, at := range s.pods {
		if at.pod.Namespace != name {
			continue
		}
		for _, t := range terms {
			if t.Selects(at.pod) {
				s.countSelected(at.slot, t, by)
				s.journal.note(at.slot, false)
			}
		}
	}
}

// inNamespace reports whether the term selects Pods of a namespace with these labels.
func (t *Term) inNamespace(name string, of labels.Set) bool {
	if t.Namespaces != nil && !slices.Contains(t.Namespaces, name) {
		return false
	}
	for i := range t.In {
		if !t.In[i].has(name, of) {
			return false
		}
	}
	return true
}

// selectsByLabels reports whether the selectors match the labels of a Pod.
func (t *Term) selectsByLabels(of labels.Set) bool {
	for _, selector := range t.Selectors {
		if !selector.Matches(of) {
			return false
		}
	}
	return true
}
