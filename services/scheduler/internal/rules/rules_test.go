package rules_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/rules"
	"keelson.dev/services/scheduler/internal/rulestest"
)

func TestNormalize(t *testing.T) {
	for name, test := range map[string]struct {
		order                      rules.Order
		raw, least, greatest, want int64
	}{
		"higher: the greatest":                {rules.HigherIsBetter, 8, 4, 8, 100},
		"higher: half of it":                  {rules.HigherIsBetter, 4, 4, 8, 50},
		"higher: nothing":                     {rules.HigherIsBetter, 0, 0, 8, 0},
		"higher: all alike":                   {rules.HigherIsBetter, 8, 8, 8, 100},
		"higher: all nothing":                 {rules.HigherIsBetter, 0, 0, 0, 0},
		"lower: the greatest":                 {rules.LowerIsBetter, 8, 4, 8, 0},
		"lower: half of it":                   {rules.LowerIsBetter, 4, 4, 8, 50},
		"lower: nothing":                      {rules.LowerIsBetter, 0, 0, 8, 100},
		"lower: all nothing":                  {rules.LowerIsBetter, 0, 0, 0, 100},
		"between: the greatest":               {rules.HighestIsBest, 8, 4, 8, 100},
		"between: the least":                  {rules.HighestIsBest, 4, 4, 8, 0},
		"between: the middle":                 {rules.HighestIsBest, 6, 4, 8, 50},
		"between: below zero":                 {rules.HighestIsBest, -5, -10, 10, 25},
		"between: the least of negative ones": {rules.HighestIsBest, -10, -10, -5, 0},
		"between: all alike":                  {rules.HighestIsBest, 7, 7, 7, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.order.Normalize(test.raw, test.least, test.greatest); got != test.want {
				t.Errorf("score is %d, want %d", got, test.want)
			}
		})
	}
}

func keyed(text func(rules.Pod) string) rules.Rule {
	return rules.Rule{Key: func(b []byte, p rules.Pod) []byte { return append(b, text(p)...) }}
}

// Pods are of one class when profile, usage and the keys of all rules are equal, each by itself.
func TestProfileKey(t *testing.T) {
	c := rulestest.New(t)
	profile := rules.Profile{Name: "a", Rules: []rules.Rule{
		keyed(func(p rules.Pod) string { return p.Namespace }), {Name: "reads nothing"},
		keyed(func(p rules.Pod) string { return p.Spec.Hostname }),
	}}
	pod := func(namespace, name, cpu string) rules.Pod {
		p := rulestest.Pod("p", rulestest.Requests(corev1.ResourceCPU, cpu))
		p.Namespace, p.Spec.Hostname = namespace, name
		return c.Subject(p)
	}
	base := profile.Key(pod("x", "yz", "1"))
	if profile.Key(pod("x", "yz", "1000m")) != base {
		t.Error("equal Pods are of two classes")
	}
	for name, other := range map[string]rules.Pod{
		"usage": pod("x", "yz", "2"), "the first rule": pod("w", "yz", "1"), "the last rule": pod("x", "y", "1"),
		"where keys end": pod("xy", "z", "1"),
	} {
		if profile.Key(other) == base {
			t.Errorf("%s: unlike Pods are of one class", name)
		}
	}
	renamed := profile
	renamed.Name = "b"
	if renamed.Key(pod("x", "yz", "1")) == base {
		t.Error("Pods of two profiles are of one class")
	}
}

// A judgement holds what has something to say, in the order of the profile; a score of weight 0 has not.
func TestMake(t *testing.T) {
	filter := func(text string) func(rules.Pod) *rules.Filter {
		return func(rules.Pod) *rules.Filter { return &rules.Filter{Texts: []string{text}} }
	}
	score := func(rules.Pod) *rules.Score { return &rules.Score{} }
	profile := rules.Profile{Rules: []rules.Rule{
		{Filter: filter("first"), Score: score, Weight: 3},
		{Filter: func(rules.Pod) *rules.Filter { return nil }, Score: func(rules.Pod) *rules.Score { return nil },
			Weight: 1},
		{Filter: filter("second"), Score: score},
		{Score: score, Weight: 1},
	}}
	j := profile.Make(rulestest.New(t).Subject(rulestest.Pod("p")))
	if len(j.Filters) != 2 || j.Filters[0].Texts[0] != "first" || j.Filters[1].Texts[0] != "second" {
		t.Errorf("filters are %+v", j.Filters)
	}
	if len(j.Scores) != 2 || j.Scores[0].Weight != 3 || j.Scores[1].Weight != 1 {
		t.Errorf("scores are %+v", j.Scores)
	}
}

func TestConstructors(t *testing.T) {
	view := func(columns.View) int { return 1 }
	if j := rules.ByShape(view); j.On() != rules.OnShape || j.View(columns.View{}) != 1 {
		t.Error("ByShape does not judge by shape")
	}
	if j := rules.ByName(view); j.On() != rules.OnName || j.View(columns.View{}) != 1 {
		t.Error("ByName does not judge by name")
	}
	if j := rules.ByRoom(func(columns.Node) int { return 2 }); j.On() != rules.OnRoom || j.Node(columns.Node{}) != 2 {
		t.Error("ByRoom does not judge by room")
	}
	counts := []columns.Count{{Carriers: true}, {}}
	j := rules.ByDomain(counts, func(domains []columns.Domain) int { return 10*domains[0].Pods + domains[1].Pods })
	if j.On() != rules.OnDomain || len(j.Counts()) != 2 || !j.Counts()[0].Carriers || j.Counts()[1].Carriers {
		t.Error("ByDomain does not say what it counts")
	}
	if got := j.Domains([]columns.Domain{{Pods: 3}, {Pods: 4}}); got != 34 {
		t.Errorf("ByDomain judges the domains as %d, want 34", got)
	}
	if rules.ByShape(view).Counts() != nil {
		t.Error("ByShape counts something")
	}
}

// carried returns a State's terms of these purposes.
func carried(s *columns.State, purposes ...string) []*columns.Term {
	var specs []columns.TermSpec
	for _, purpose := range purposes {
		specs = append(specs, columns.TermSpec{Purpose: purpose})
	}
	return s.Carry("x", specs)
}

// Terms make classes: those that a Pod carries, in their order, and those that select it, each by itself. What else a
// Pod's labels say does not.
func TestProfileKeyHoldsTerms(t *testing.T) {
	s := columns.New(1)
	terms := carried(s, "a", "b", "c")
	profile := rules.Profile{Name: "p"}
	key := func(carries, selectedBy []*columns.Term, label string) string {
		p := rulestest.Pod("p", rulestest.Labelling("label", label))
		subject := rules.PodOf(p, s.Usage(p))
		subject.Terms, subject.SelectedBy = carries, selectedBy
		return profile.Key(subject)
	}
	seen := map[string]string{}
	for name, test := range map[string]struct{ carries, selectedBy []*columns.Term }{
		"none":                     {nil, nil},
		"carries one":              {terms[:1], nil},
		"is selected by one":       {nil, terms[:1]},
		"carries another":          {terms[1:2], nil},
		"is selected by another":   {nil, terms[1:2]},
		"carries two":              {terms[:2], nil},
		"carries two, turned":      {[]*columns.Term{terms[1], terms[0]}, nil},
		"carries the last two":     {terms[1:], nil},
		"is selected by two":       {nil, terms[:2]},
		"carries what selects it":  {terms[:1], terms[:1]},
		"carries one, two select":  {terms[:1], terms[1:]},
		"carries two, one selects": {terms[:2], terms[2:]},
		"all":                      {terms, terms},
	} {
		got := key(test.carries, test.selectedBy, "1")
		if other, ok := seen[got]; ok {
			t.Errorf("%q and %q are one class", name, other)
		}
		seen[got] = name
		if key(test.carries, test.selectedBy, "2") != got {
			t.Errorf("%q: a label alone makes a class", name)
		}
	}
}

func TestIsSelectedBy(t *testing.T) {
	terms := carried(columns.New(1), "a", "b")
	p := rules.Pod{Terms: terms[:1], SelectedBy: terms[1:]}
	if p.IsSelectedBy(terms[0]) || !p.IsSelectedBy(terms[1]) {
		t.Error("a Pod that is selected by b and carries a says otherwise")
	}
}
