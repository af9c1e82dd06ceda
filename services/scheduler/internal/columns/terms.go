package columns

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// TermSpec is what a spread constraint or an (anti-)affinity term of a Pod asks for: Pods by their labels, counted in
// the domains of a topology key. A rule makes it of a Pod that carries it.
type TermSpec struct {
	// Purpose is what the rule counts Pods for, so that terms that select alike and mean different things stay two.
	Purpose string
	// TopologyKey is the label of nodes whose values are the domains.
	TopologyKey string
	// Weight is that of a preferred term.
	Weight int32
	// Namespaces are those of the Pods that the term selects; nil for all.
	Namespaces []string
	// In are sets of namespaces, in each of which the Pod's must be.
	In []NamespaceSet
	// Selectors must match the Pod's labels, each of them.
	Selectors []labels.Selector
	// LiveOnly leaves out Pods that are being deleted.
	LiveOnly bool
	// OneSided is set if a term says nothing to the Pods that it selects. It lasts a while after the last carrier is
	// gone.
	OneSided bool
}

// TermID names a term; 0 is none. An ID is never used for a second term.
type TermID uint32

// Term is a TermSpec that Pods carry. Equal ones are one Term, which lasts while some Pod carries it. To Pods that do
// not carry it, it says nothing before one that does has been placed.
type Term struct {
	TermSpec
	ID TermID

	key      string
	carriers int            // Pods that carry it, those without a node included; more for a Pod that repeats it
	carried  map[Slot]int32 // by node, how many of these are there
	selected map[Slot]int32 // by node, how many Pods it selects there; nil until the first query
	awaited  map[Slot]int32 // by node, how many nominated Pods it selects or is carried by; nil until the first query
	domains  []*Domains
	// namespaces are the labels of all namespaces, the State's.
	namespaces map[string]labels.Set
	idle       bool // no Pod carries it, and it is kept
	placed     bool // a Pod that carries it has a node, or is nominated for one
	counting   bool // the Pods that it selects are counted
}

// Carried reports whether some Pod still carries the term, or may soon.
func (t *Term) Carried() bool { return t.carriers > 0 || t.idle }

// Placed reports whether a Pod that carries the term has got a node, or a nomination, since the term exists. A term
// that only waiting Pods carry constrains no Pod, however many they are.
func (t *Term) Placed() bool { return t.placed }

// Selects reports whether the term selects the Pod.
func (t *Term) Selects(p *corev1.Pod) bool {
	return t.selects(p.Namespace, p.Labels, p.DeletionTimestamp != nil)
}

func (t *Term) selects(namespace string, of labels.Set, leaving bool) bool {
	return (!t.LiveOnly || !leaving) && t.inNamespace(namespace, t.namespaces[namespace]) && t.selectsByLabels(of)
}

// terms is all terms.
type terms struct {
	byKey    map[string]*Term
	speaking file // those that say something to Pods that do not carry them
	counting file // those that count the Pods that they select
	last     TermID
	ofPod    map[types.UID][]*Term // what each Pod carries
	changed  []*Term               // placed or dropped since TakeTerms
	idle     []*Term               // that no Pod carries, the one that was carried last at the end

	namespaces map[string]labels.Set // the labels of each namespace that has some
}

func newTerms() terms {
	return terms{byKey: map[string]*Term{}, speaking: newFile(), counting: newFile(),
		ofPod: map[types.UID][]*Term{}, namespaces: map[string]labels.Set{}}
}

// Terms returns how many terms there are.
func (s *State) Terms() int { return len(s.terms.byKey) }

// TakeTerms returns the terms that were placed, or that lost their last carrier, since the last call. The caller looks
// again at the Pods that the placed ones select. Of the terms that are OneSided it returns the dropped ones.
func (s *State) TakeTerms() []*Term {
	changed := s.terms.changed
	s.terms.changed = nil
	return changed
}

// TermsThatSelect returns the terms that select the Pod and have something to say to it: those that it carries itself,
// and of the others those that are placed and not OneSided. They are in the order of their IDs, each once.
func (s *State) TermsThatSelect(p *corev1.Pod, own []*Term) []*Term {
	found := appendSelecting(s.terms.speaking.selecting(p), own, p)
	if len(found) == 0 {
		return nil
	}
	return slices.Compact(slices.SortedFunc(slices.Values(found), byID))
}

// Carry notes which terms a Pod carries, whether it has a node or waits for one, and returns them in the order of the
// specs. A Pod that is gone carries none.
func (s *State) Carry(uid types.UID, specs []TermSpec) []*Term {
	before := s.terms.ofPod[uid]
	if len(specs) == 0 && before == nil {
		return nil
	}
	now := make([]*Term, 0, len(specs))
	for i := range specs {
		t := s.terms.acquire(&specs[i])
		now = append(now, t)
	}
	if slices.Equal(before, now) {
		s.terms.release(now)
		return before
	}
	at, assigned := s.pods[uid]
	if assigned {
		s.countCarried(at.slot, before, -1)
		s.countCarried(at.slot, now, 1)
		s.journal.note(at.slot, false)
	}
	if slot, ok := s.reserved.slots[uid]; ok {
		s.awaitCarried(slot, before, -1)
		s.awaitCarried(slot, now, 1)
		s.journal.note(slot, !assigned)
	}
	if len(now) == 0 {
		delete(s.terms.ofPod, uid)
	} else {
		s.terms.ofPod[uid] = now
	}
	s.terms.release(before)
	return now
}

// acquire returns the term of the spec and makes it when it is new.
func (t *terms) acquire(spec *TermSpec) *Term {
	key := spec.key()
	term := t.byKey[key]
	if term == nil {
		t.last++
		term = &Term{TermSpec: *spec, ID: t.last, key: key, carried: map[Slot]int32{},
			namespaces: t.namespaces}
		t.byKey[key] = term
	}
	if term.idle {
		t.idle, term.idle = slices.DeleteFunc(t.idle, func(other *Term) bool { return other == term }), false
	}
	term.carriers++
	return term
}

// maxIdle bounds the terms that are kept though no Pod carries them: the next Pod of a ReplicaSet has the terms of the
// one before.
const maxIdle = 512

func (t *terms) release(list []*Term) {
	for _, term := range list {
		term.carriers--
		switch {
		case term.carriers > 0:
		case !term.OneSided:
			t.drop(term)
		default:
			t.idle, term.idle = append(t.idle, term), true
			if len(t.idle) > maxIdle {
				t.idle[0].idle = false
				t.drop(t.idle[0])
				t.idle = slices.Delete(t.idle, 0, 1)
			}
		}
	}
}

func (t *terms) drop(term *Term) {
	delete(t.byKey, term.key)
	if term.placed && !term.OneSided {
		t.speaking.remove(term)
	}
	if term.counting {
		t.counting.remove(term)
	}
	t.changed = append(t.changed, term)
}

// place notes that a Pod which carries the term was given a node, or is nominated for one.
func (t *terms) place(term *Term) {
	if term.placed {
		return
	}
	term.placed = true
	if !term.OneSided {
		t.speaking.add(term)
		t.changed = append(t.changed, term)
	}
}

// count has the Pods counted from now on that the term selects.
func (t *terms) count(term *Term) {
	if !term.counting {
		term.counting = true
		t.counting.add(term)
	}
}

// key is equal for equal specs.
func (t *TermSpec) key() string {
	b := strconv.AppendQuote(nil, t.Purpose)
	b = strconv.AppendQuote(b, t.TopologyKey)
	b = strconv.AppendInt(b, int64(t.Weight), 10)
	b = strconv.AppendBool(b, t.LiveOnly)
	b = strconv.AppendBool(b, t.OneSided)
	b = strconv.AppendBool(b, t.Namespaces == nil)
	for _, namespace := range t.Namespaces {
		b = strconv.AppendQuote(b, namespace)
	}
	for i := range t.In {
		b = t.In[i].appendKey(b)
	}
	b = append(b, '|')
	for _, selector := range t.Selectors {
		if _, selectable := selector.Requirements(); !selectable {
			b = append(b, '!') // selects nothing; its text is that of one that selects everything
		}
		b = strconv.AppendQuote(b, selector.String())
	}
	return string(b)
}
