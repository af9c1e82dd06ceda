package class

import (
	"fmt"
	"testing"

	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/rules"
	"keelson.dev/services/scheduler/internal/rulestest"
)

// A node that is held for others refuses nothing by itself: who holds it next looks at it again.
func TestRefuses(t *testing.T) {
	s := columns.New(1)
	profile := rules.Profile{Rules: []rules.Rule{{Filter: func(rules.Pod) *rules.Filter {
		return &rules.Filter{Texts: []string{"the third"}, Judge: rules.ByName(func(v columns.View) rules.Reasons {
			if v.Node().Name == "n2" {
				return 1
			}
			return 0
		})}
	}}}}
	for i := range 3 {
		s.SetNode(rulestest.Node(fmt.Sprint("n", i)))
	}
	p := rulestest.Pod("p")
	c := NewSet().Join(&profile, rules.PodOf(p, s.Usage(p)))
	check := func(at string) {
		t.Helper()
		for name, want := range map[string]bool{"n0": false, "n1": false, "n2": true} {
			if got := c.Refuses(s, s.Slot(name)); got != want {
				t.Errorf("%s: %s refuses is %v, want %v", at, name, got, want)
			}
		}
	}
	check("free")
	c.Hold(s, map[columns.Slot]Refusal{s.Slot("n1"): c.Refuse(s, s.Node(s.Slot("n2")))})
	if n := c.Feasible(s); n != 1 {
		t.Fatalf("%d nodes can take a Pod beside the one that is held", n)
	}
	check("held")
	c.Hold(s, nil)
	check("free again")
}
