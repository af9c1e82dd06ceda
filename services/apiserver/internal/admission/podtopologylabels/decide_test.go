package podtopologylabels

import (
	"maps"
	"testing"
)

func TestDecide(t *testing.T) {
	const zone, region = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
	type labels = map[string]string
	for name, row := range map[string]struct{ have, node, want labels }{
		"nothing":            {nil, nil, nil},
		"no topology":        {labels{"a": "b"}, labels{"kubernetes.io/hostname": "n"}, labels{"a": "b"}},
		"zone and region":    {nil, labels{zone: "z", region: "r", "x": "y"}, labels{zone: "z", region: "r"}},
		"the zone alone":     {labels{"a": "b"}, labels{zone: "z"}, labels{"a": "b", zone: "z"}},
		"what it has falls":  {labels{zone: "mine"}, labels{zone: "z"}, labels{zone: "z"}},
		"what it has stays":  {labels{region: "mine"}, labels{zone: "z"}, labels{zone: "z", region: "mine"}},
		"another topology":   {nil, labels{"topology.kubernetes.io/rack": "1"}, nil},
		"what is empty, too": {nil, labels{zone: ""}, labels{zone: ""}},
	} {
		before := maps.Clone(row.have)
		got := decide(row.have, row.node)
		if !maps.Equal(got, row.want) || !maps.Equal(row.have, before) {
			t.Errorf("%s: %v, want %v; it had %v", name, got, row.want, row.have)
		}
		if again := decide(got, row.node); !maps.Equal(again, got) {
			t.Errorf("%s: a second pass makes %v of it", name, again)
		}
	}
}
