package columns

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// Which nodes are awaited of three, on the first of which p of the label app=web is nominated, after an event; the same
// when it is asked for the first time.
func TestAwaited(t *testing.T) {
	spec := web(zone)
	spec.In = []NamespaceSet{{Names: []string{"default"}, Selector: labels.SelectorFromSet(labels.Set{"team": "x"})}}
	usage := &Usage{}
	nominate := func(s *State, uid types.UID, node string, of map[string]string, change ...func(*corev1.Pod)) {
		p := labelled(uid, of)
		for _, c := range change {
			c(p)
		}
		s.Reserve(node, Reservation{UID: uid, Pod: p, Usage: usage})
	}
	app := func(name string) map[string]string { return map[string]string{"app": name} }
	elsewhere := func(p *corev1.Pod) { p.Namespace = "other" }
	for name, test := range map[string]struct {
		event func(*State)
		want  []string
	}{
		"nothing":           {func(*State) {}, []string{"a"}},
		"it goes":           {func(s *State) { s.Unreserve("p", true) }, nil},
		"it goes elsewhere": {func(s *State) { nominate(s, "p", "b", app("web")) }, []string{"b"}},
		"it is seen again":  {func(s *State) { nominate(s, "p", "a", app("web")) }, []string{"a"}},
		"it is relabelled":  {func(s *State) { nominate(s, "p", "a", app("db")) }, nil},
		"another is relabelled": {func(s *State) {
			nominate(s, "q", "b", app("db"))
			nominate(s, "q", "b", app("web"))
		}, []string{"a", "b"}},
		"another comes":            {func(s *State) { nominate(s, "q", "b", app("web")) }, []string{"a", "b"}},
		"another of no such label": {func(s *State) { nominate(s, "q", "b", app("db")) }, []string{"a"}},
		"another of a namespace":   {func(s *State) { nominate(s, "q", "b", app("web"), elsewhere) }, []string{"a"}},
		"another beside it, it goes": {func(s *State) {
			nominate(s, "q", "a", app("web"))
			s.Unreserve("p", true)
		}, []string{"a"}},
		"the namespace joins": {func(s *State) {
			nominate(s, "q", "b", app("web"), elsewhere)
			s.SetNamespace("other", labels.Set{"team": "x"})
		}, []string{"a", "b"}},
		"the namespace parts": {func(s *State) {
			s.SetNamespace("other", labels.Set{"team": "x"})
			nominate(s, "q", "b", app("web"), elsewhere)
			s.SetNamespace("other", nil)
		}, []string{"a"}},
		"one that carries the term": {func(s *State) {
			s.Carry("q", []TermSpec{spec})
			nominate(s, "q", "b", app("db"))
		}, []string{"a", "b"}},
		"one comes to carry it": {func(s *State) {
			nominate(s, "q", "b", app("db"))
			s.Carry("q", []TermSpec{spec})
		}, []string{"a", "b"}},
		"one carries it no longer": {func(s *State) {
			s.Carry("q", []TermSpec{spec})
			nominate(s, "q", "b", app("db"))
			s.Carry("q", nil)
		}, []string{"a"}},
		"it is selected and carries the term": {func(s *State) {
			s.Carry("p", []TermSpec{spec})
			s.Carry("p", nil)
		}, []string{"a"}},
	} {
		for _, late := range []bool{false, true} {
			s := New(0)
			for _, node := range []string{"a", "b", "c"} {
				s.SetNode(domainNode(node, map[string]string{zone: node}))
			}
			term := s.Carry("x", []TermSpec{spec})[0]
			nominate(s, "p", "a", app("web"))
			if !late {
				s.Awaited(term)
			}
			test.event(s)
			var got []string
			for slot := range s.Awaited(term) {
				got = append(got, s.Name(slot))
			}
			if slices.Sort(got); !slices.Equal(got, test.want) {
				t.Errorf("%s, asked late %v: %v are awaited, want %v", name, late, got, test.want)
			}
		}
	}
}
