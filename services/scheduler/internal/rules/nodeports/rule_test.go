package nodeports_test

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/scheduler/internal/rules/nodeports"
	"keelson.dev/services/scheduler/internal/rulestest"
)

func TestFilter(t *testing.T) {
	const taken = "node(s) didn't have free ports for the requested pod ports"
	for name, test := range map[string]struct {
		port    int32
		without []types.UID
		want    []string
	}{
		"host port in use":        {port: 9000, want: []string{taken}},
		"another port":            {port: 9001},
		"one of two holders gone": {port: 9000, without: []types.UID{"uid-a"}, want: []string{taken}},
		"both holders gone":       {port: 9000, without: []types.UID{"uid-a", "uid-b"}},
		"the Pod of another node gone": {port: 9000, without: []types.UID{"uid-a", "uid-c"},
			want: []string{taken}},
		"one holder named twice counts once": {port: 9000, without: []types.UID{"uid-a", "uid-a"},
			want: []string{taken}},
		"a Pod that is nowhere has no meaning": {port: 9000, without: []types.UID{"uid-a", "uid-none"},
			want: []string{taken}},
	} {
		t.Run(name, func(t *testing.T) {
			c := rulestest.New(t, rulestest.Node("n"), rulestest.Node("m")).Run(
				rulestest.Pod("a", rulestest.HostPort(9000), rulestest.OnNode("n")),
				rulestest.Pod("b", rulestest.HostPort(9000), rulestest.OnNode("n")),
				rulestest.Pod("c", rulestest.HostPort(9000), rulestest.OnNode("m")))
			got := c.Refusals(nodeports.Rule(), rulestest.Pod("p", rulestest.HostPort(test.port)), "n", test.without...)
			if !slices.Equal(got, test.want) {
				t.Errorf("refused for %q, want %q", got, test.want)
			}
		})
	}
	c := rulestest.New(t)
	if f := nodeports.Rule().Filter(c.Subject(rulestest.Pod("p"))); f != nil {
		t.Error("a Pod without host ports has a filter")
	}
}
