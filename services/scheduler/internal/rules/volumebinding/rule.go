// Package volumebinding holds Pods to the nodes where their claims have, or can get, volumes.
package volumebinding

import (
	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/rules"
	"keelson.dev/services/scheduler/internal/volumes"
)

// Rule refuses every node while a claim is not fit for use, nodes where a bound volume cannot be used, and those where
// a claim that waits for its first Pod finds no volume and none can be made.
func Rule() rules.Rule {
	return rules.Rule{Name: "VolumeBinding", Key: key, Filter: filter}
}

func key(b []byte, p rules.Pod) []byte {
	if p.Volumes == nil {
		return b
	}
	return p.Volumes.Key(b)
}

func filter(p rules.Pod) *rules.Filter {
	d := p.Volumes
	switch {
	case d == nil:
		return nil
	case d.Blocked != "":
		return &rules.Filter{Texts: []string{d.Blocked}, Pins: &rules.Pins{}, Whole: !d.Counted,
			Judge: rules.ByShape(func(columns.View) rules.Reasons { return 1 })}
	}
	names, hosts, reason, confined := d.Confined()
	f := &rules.Filter{Texts: []string{volumes.Conflict, volumes.NoVolume}}
	var conflictBit, noVolumeBit rules.Reasons = 1, 2
	if confined {
		f.Pins = &rules.Pins{Names: names, Hostnames: hosts}
		if reason == volumes.NoVolume {
			f.Texts[0], f.Texts[1] = f.Texts[1], f.Texts[0]
			conflictBit, noVolumeBit = 2, 1
		}
	}
	judge := func(v columns.View) (r rules.Reasons) {
		_, conflict, noVolume := d.Plan(v.Node())
		if conflict {
			r |= conflictBit
		}
		if noVolume {
			r |= noVolumeBit
		}
		return r
	}
	f.Judge = rules.ByShape(judge)
	if d.ReadsNames() {
		f.Judge = rules.ByName(judge)
	}
	return f
}
