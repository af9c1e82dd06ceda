// Package volumebinding holds Pods to the nodes where their claims have, or can get, volumes.
//
//keelson:decision
package volumebinding

import (
	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/rules"
	"keelson.dev/services/scheduler/internal/volumes"
)

// Rule refuses every node while a claim is not fit for use, nodes where a bound volume cannot be used, and those where
// a claim that waits for its first Pod finds no volume and none can be made, be it for want of storage. It ranks nodes
// by the score of what is asked and what there is; capacity is not 0.
func Rule(score func(requested, capacity int64) int64) rules.Rule {
	return rules.Rule{Name: "VolumeBinding", Weight: 1, Key: key, Filter: filter,
		Score: func(p rules.Pod) *rules.Score {
			if p.Volumes == nil || p.Volumes.Blocked != "" || !p.Volumes.Scored() {
				return nil
			}
			return &rules.Score{Order: rules.AsItIs, Judge: byPlan(p.Volumes, func(plan volumes.Plan) int64 {
				return plan.Score(score)
			})}
		}}
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
	f := &rules.Filter{Texts: []string{volumes.Conflict, volumes.NoVolume, volumes.NoStorage}, Incurable: 1 | 2 | 4}
	var conflictBit, noVolumeBit rules.Reasons = 1, 2
	if confined {
		f.Pins = &rules.Pins{Names: names, Hostnames: hosts}
		if reason == volumes.NoVolume {
			f.Texts[0], f.Texts[1] = f.Texts[1], f.Texts[0]
			conflictBit, noVolumeBit = 2, 1
		}
	}
	f.Judge = byPlan(d, func(plan volumes.Plan) (r rules.Reasons) {
		if plan.Conflict {
			r |= conflictBit
		}
		if plan.NoVolume {
			r |= noVolumeBit
		}
		if plan.NoStorage {
			r |= 4
		}
		return r
	})
	return f
}

// byPlan judges by what the claims get on a node. Its storage is room, though of no Pod that is there: others take of
// it, and a node is judged again when the storage changes.
func byPlan[T any](d *volumes.Demand, judge func(volumes.Plan) T) rules.Judge[T] {
	if d.Tracked() {
		return rules.ByRoom(func(n columns.Node) T { return judge(d.Plan(n.View().Node(), n.Storage)) })
	}
	viewed := func(v columns.View) T { return judge(d.Plan(v.Node(), nil)) }
	if d.ReadsNames() {
		return rules.ByName(viewed)
	}
	return rules.ByShape(viewed)
}
