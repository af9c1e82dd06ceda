package columns

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
)

func TestSelects(t *testing.T) {
	for name, test := range map[string]struct {
		spec TermSpec
		want bool
	}{
		"its labels":           {TermSpec{Selectors: selecting("app=web")}, true},
		"other labels":         {TermSpec{Selectors: selecting("app=db")}, false},
		"one of two selectors": {TermSpec{Selectors: append(selecting("app=web"), selecting("app=db")...)}, false},
		"both selectors":       {TermSpec{Selectors: append(selecting("app=web"), selecting("tier")...)}, true},
		"no selector":          {TermSpec{}, true},
		"nothing":              {TermSpec{Selectors: []labels.Selector{labels.Nothing()}}, false},
		"its namespace":        {TermSpec{Namespaces: []string{"a", "default"}}, true},
		"other namespaces":     {TermSpec{Namespaces: []string{"a", "b"}}, false},
		"no namespace":         {TermSpec{Namespaces: []string{}}, false},
		"Pods that live":       {TermSpec{LiveOnly: true}, false},
	} {
		p := labelled("p", map[string]string{"app": "web", "tier": "1"})
		p.DeletionTimestamp = &metav1.Time{}
		s := New(0)
		term := s.Carry("x", []TermSpec{test.spec})[0]
		place(s, "x")
		if got := term.Selects(p); got != test.want {
			t.Errorf("%s: selects is %v", name, got)
		}
		if got := len(s.TermsThatSelect(p, nil)) == 1; got != test.want {
			t.Errorf("%s: is found: %v", name, got)
		}
	}
}

func (f *file) len() int { return len(f.byLabel) + len(f.byName) + len(f.others) }

// place gives a Pod without labels a node.
func place(s *State, uid types.UID) {
	p := identified(uid)
	s.SetPod(p, "n", s.Usage(p))
}

// Terms that say the same are one; each other one has its own ID.
func TestTermsAreInterned(t *testing.T) {
	specs := []TermSpec{
		{},
		{Purpose: "p"},
		{TopologyKey: "p"},
		{Weight: 1},
		{LiveOnly: true},
		{Namespaces: []string{}},
		{Namespaces: []string{"a"}},
		{Namespaces: []string{"a", "b"}},
		{Selectors: selecting("a=b")},
		{Selectors: selecting("a in (b,c)")},
		{Selectors: append(selecting("a=b"), selecting("c")...)},
		{Selectors: []labels.Selector{labels.Nothing()}},
		{Selectors: []labels.Selector{labels.Everything()}},
		{Selectors: selecting("!a")},
	}
	s := New(0)
	first, second := s.Carry("x", specs), s.Carry("y", slices.Clone(specs))
	if !slices.Equal(first, second) || s.Terms() != len(specs) {
		t.Errorf("%d terms of %d specs", s.Terms(), len(specs))
	}
	for i, term := range first {
		if term.ID != TermID(i+1) {
			t.Errorf("term %d has ID %d", i, term.ID)
		}
	}
}

// A term lasts while a Pod carries it, with or without a node, and says so when it comes and goes.
func TestTermsLastAsLongAsTheyAreCarried(t *testing.T) {
	s := New(0)
	spec := []TermSpec{{Selectors: selecting("a=b")}, {Selectors: selecting("c")}, {Selectors: selecting("!d")}}
	if s.Carry("none", nil) != nil {
		t.Error("a Pod without terms carries some")
	}
	terms := s.Carry("p", spec)
	if got := s.TakeTerms(); len(got) != 0 {
		t.Errorf("%d terms say something before a Pod that carries them is placed", len(got))
	}
	s.Carry("q", spec[:1])
	p := labelled("p", nil)
	s.SetPod(p, "n", s.Usage(p))
	if got := s.TakeTerms(); !slices.Equal(got, terms) || len(s.TakeTerms()) != 0 {
		t.Errorf("%d terms are placed, want 3, once", len(got))
	}
	s.RemovePod("p") // its binding failed
	if s.Carry("p", slices.Clone(spec)); s.Terms() != 3 || len(s.TakeTerms()) != 0 {
		t.Errorf("%d terms after what changes none", s.Terms())
	}
	s.Carry("p", nil)
	if got := s.TakeTerms(); !slices.Equal(got, terms[1:]) || s.Terms() != 1 || terms[1].Carried() ||
		!terms[0].Carried() {
		t.Errorf("%d terms were dropped, %d are left", len(got), s.Terms())
	}
	s.Carry("q", nil)
	if s.Terms() != 0 || s.terms.speaking.len()+s.terms.counting.len()+len(s.terms.ofPod) != 0 {
		t.Errorf("something is left: %+v", s.terms)
	}
	if again := s.Carry("q", spec)[0]; again.ID != 4 {
		t.Errorf("a term that comes again has ID %d, want 4", again.ID)
	}
}

// What a Pod carries says nothing to others before it is given a node or nominated for one, and is not looked at when
// others come: many that wait for ever with many terms cost those beside them nothing.
func TestTermsOfWhatWaitsSayNothing(t *testing.T) {
	asked := labelled("asked", map[string]string{"app": "web"})
	for name, place := range map[string]func(*State, *corev1.Pod){
		"given a node": func(s *State, p *corev1.Pod) { s.SetPod(p, "n", s.Usage(p)) },
		"nominated": func(s *State, p *corev1.Pod) {
			s.Reserve("n", Reservation{UID: p.UID, Pod: p, Usage: s.Usage(p)})
		},
	} {
		s := New(0)
		carrier := identified("carrier")
		terms := s.Carry(carrier.UID, []TermSpec{{Selectors: selecting("!a")}, {Selectors: selecting("app=db")}})
		if got := s.TermsThatSelect(
			asked,
			nil,
		); len(
			got,
		)+len(
			s.terms.speaking.others,
		)+len(
			s.terms.counting.others,
		) != 0 {
			t.Errorf("%s: before, %d terms say something to others", name, len(got))
		}
		if got := s.TermsThatSelect(asked, terms); !slices.Equal(got, terms[:1]) {
			t.Errorf("%s: before, %d terms say something to who carries them, want 1", name, len(got))
		}
		place(s, carrier)
		if got := s.TermsThatSelect(asked, nil); !slices.Equal(got, terms[:1]) || !terms[0].Placed() {
			t.Errorf("%s: %d terms say something, want 1", name, len(got))
		}
		if got := s.TermsThatSelect(asked, terms); !slices.Equal(got, terms[:1]) {
			t.Errorf("%s: %d terms say something to who carries them, want 1, once", name, len(got))
		}
	}
}

// The terms that select a Pod come in the order of their IDs, each once, whatever they select by.
func TestTermsThatSelect(t *testing.T) {
	s := New(0)
	terms := s.Carry("x", []TermSpec{
		{Selectors: selecting("!nobody")},
		{Selectors: selecting("app in (db,web)")},
		{Selectors: selecting("tier,app!=db")},
		{Selectors: selecting("app=db")},
		{Selectors: selecting("app=web")},
		{Selectors: selecting("tier=2")},
	})
	place(s, "x")
	want := []*Term{terms[0], terms[1], terms[2], terms[4]}
	for range 10 {
		got := s.TermsThatSelect(labelled("p", map[string]string{"app": "web", "tier": "1", "i": "7"}), nil)
		if !slices.Equal(got, want) {
			t.Fatalf("%d terms select the Pod, want 4", len(got))
		}
	}
	if got := s.TermsThatSelect(labelled("p", map[string]string{"nobody": "", "i": "7"}), nil); got != nil {
		t.Errorf("%d terms select a Pod that none selects", len(got))
	}
}

// A term is filed by the first value that it asks for, else by a label that it asks for, so that few terms are looked
// at for a Pod.
func TestTermsAreFiledByALabel(t *testing.T) {
	for text, want := range map[string]struct {
		key    string
		values int
	}{
		"":                    {"", 0},
		"a=b":                 {"a", 1},
		"a==b":                {"a", 1},
		"a in (b,c)":          {"a", 2},
		"a":                   {"a", 0},
		"!a":                  {"", 0},
		"a!=b":                {"", 0},
		"a notin (b)":         {"", 0},
		"!a,b":                {"b", 0},
		"a=b,c=d":             {"a", 1},
		"a notin (b),c=d":     {"c", 1},
		"a,b=c":               {"b", 1},
		"a!=x,b in (c,d),e=f": {"b", 2},
	} {
		term := New(0).Carry("x", []TermSpec{{Selectors: selecting(text)}})[0]
		if key, values := term.label(); key != want.key || len(values) != want.values {
			t.Errorf("%q is filed by %q and %v", text, key, values)
		}
	}
}

// A selector that names a value twice counts a Pod that has it once.
func TestAValueThatIsNamedTwice(t *testing.T) {
	twice, err := labels.NewRequirement("app", selection.In, []string{"web", "web"})
	if err != nil {
		t.Fatal(err)
	}
	s := New(0)
	term := s.Carry("x", []TermSpec{{Selectors: []labels.Selector{labels.NewSelector().Add(*twice)}}})[0]
	s.selectedByNode(term)
	p := labelled("p", map[string]string{"app": "web"})
	s.SetPod(p, "n", s.Usage(p))
	if got := term.selected[s.Slot("n")]; got != 1 {
		t.Errorf("one Pod counts as %d", got)
	}
	s.Carry("x", nil)
	if s.terms.counting.len() != 0 {
		t.Errorf("something is left: %+v", s.terms.counting)
	}
}
