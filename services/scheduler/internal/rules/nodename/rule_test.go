package nodename_test

import (
	"slices"
	"testing"

	"keelson.dev/services/scheduler/internal/rules/nodename"
	"keelson.dev/services/scheduler/internal/rulestest"
)

func TestFilter(t *testing.T) {
	c := rulestest.New(t, rulestest.Node("n"), rulestest.Node("m"))
	rule := nodename.Rule()
	p := rulestest.Pod("p", rulestest.OnNode("n"))
	if got := c.Refusals(rule, p, "n"); got != nil {
		t.Errorf("its node is refused for %q", got)
	}
	if got := c.Refusals(rule, p, "m"); !slices.Equal(got, []string{"node(s) didn't match the requested node name"}) {
		t.Errorf("another node is refused for %q", got)
	}
	if f := rule.Filter(c.Subject(rulestest.Pod("q"))); f != nil {
		t.Error("a Pod without a node has a filter")
	}
	if !rulestest.SameClass(rule, p, rulestest.Pod("q", rulestest.OnNode("n"))) {
		t.Error("Pods of one node are of two classes")
	}
	if rule.Name != "NodeName" || rule.Score != nil || rule.Terms != nil {
		t.Errorf("the rule is %q, with a score or terms", rule.Name)
	}
	if rulestest.SameClass(rule, p, rulestest.Pod("q", rulestest.OnNode("m"))) {
		t.Error("Pods of two nodes are of one class")
	}
}
