package volumes_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/scheduler/internal/rulestest"
)

// Where a volume with zones can be used.
func TestInZones(t *testing.T) {
	const zone, region = corev1.LabelTopologyZone, corev1.LabelTopologyRegion
	const oldZone, oldRegion = corev1.LabelFailureDomainBetaZone, corev1.LabelFailureDomainBetaRegion
	type labels = map[string]string
	for name, test := range map[string]struct {
		volume, node labels
		fits         bool
	}{
		"the same zone":                     {labels{zone: "a"}, labels{zone: "a"}, true},
		"another zone":                      {labels{zone: "a"}, labels{zone: "b"}, false},
		"one of several":                    {labels{zone: "a__b"}, labels{zone: "b"}, true},
		"none of several":                   {labels{zone: "a__b"}, labels{zone: "a__b"}, false},
		"the same region":                   {labels{region: "r"}, labels{region: "r"}, true},
		"another region":                    {labels{region: "r"}, labels{region: "s"}, false},
		"the zone of another region":        {labels{zone: "a", region: "r"}, labels{zone: "a", region: "s"}, false},
		"a node without zones":              {labels{zone: "a"}, nil, true},
		"a node with a region only":         {labels{zone: "a"}, labels{region: "r"}, false},
		"a volume without zones":            {nil, labels{zone: "a"}, true},
		"an old label, a new node":          {labels{oldZone: "a"}, labels{zone: "a"}, true},
		"an old label, a new node, unlike":  {labels{oldZone: "a"}, labels{zone: "b"}, false},
		"an old label, an old node":         {labels{oldZone: "a"}, labels{oldZone: "a", zone: "b"}, true},
		"an old region":                     {labels{oldRegion: "r"}, labels{region: "r"}, true},
		"an old region, unlike":             {labels{oldRegion: "r"}, labels{region: "s"}, false},
		"a new label, an old node":          {labels{zone: "a"}, labels{oldZone: "a"}, false},
		"a label that cannot be read":       {labels{zone: "a__"}, labels{zone: "b"}, true},
		"an empty label":                    {labels{zone: ""}, labels{zone: "b"}, true},
		"a label of nodes that says else":   {labels{"zone": "a"}, labels{"zone": "b"}, true},
		"both zone and region, as the node": {labels{zone: "a", region: "r"}, labels{zone: "a", region: "r"}, true},
		"one of several, with blanks":       {labels{zone: "a __ b"}, labels{zone: "b"}, true},
		"both old and new, the new unlike":  {labels{zone: "a", oldZone: "b"}, labels{zone: "b"}, false},
		"an old region, an old node":        {labels{oldRegion: "r"}, labels{oldRegion: "r", region: "s"}, true},
		"a node with an old zone only":      {labels{region: "r"}, labels{oldZone: "a"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBook(rulestest.Claim("data", bound("v")))
			b.SetVolume(rulestest.Volume("v", "1Gi", func(v *volume) { v.Labels = test.volume }))
			d := b.Demand(rulestest.Pod("p", rulestest.Claiming("data")))
			if got := d.InZones(test.node); got != test.fits {
				t.Errorf("it can be used: %t, want %t", got, test.fits)
			}
		})
	}
}

// The volume of a claim that is made for the Pod says nothing by its labels.
func TestZonesOfAClaimOfItsOwn(t *testing.T) {
	b := newBook(rulestest.Claim("p-data", bound("v"), ownedBy("p")))
	b.SetVolume(rulestest.Volume("v", "1Gi", func(v *volume) {
		v.Labels = map[string]string{corev1.LabelTopologyZone: "a"}
	}))
	labels := map[string]string{corev1.LabelTopologyZone: "b"}
	if !b.Demand(rulestest.Pod("p", made)).InZones(labels) {
		t.Error("the claim that is made for the Pod keeps it from the zone")
	}
	b.SetClaim(rulestest.Claim("p-data", bound("v"), version("2")))
	if b.Demand(rulestest.Pod("p", rulestest.Claiming("p-data"))).InZones(labels) {
		t.Error("the claim that the Pod names does not keep it from the zone")
	}
}
