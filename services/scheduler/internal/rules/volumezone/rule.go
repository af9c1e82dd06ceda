// Package volumezone holds Pods to the zones and regions that the labels of their volumes name.
//
//keelson:decision
package volumezone

import (
	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/rules"
)

// Rule refuses nodes outside of the zones and regions of a volume of the Pod; a node without such labels is in all.
func Rule() rules.Rule { return rules.Rule{Name: "VolumeZone", Key: key, Filter: filter} }

func key(b []byte, p rules.Pod) []byte {
	if p.Volumes == nil {
		return b
	}
	for i := range p.Volumes.Needs {
		for _, zone := range p.Volumes.Needs[i].Zones {
			b = append(append(b, zone.Key...), 0)
			for _, value := range zone.Values {
				b = append(append(b, value...), 1)
			}
		}
	}
	return b
}

func filter(p rules.Pod) *rules.Filter {
	if len(key(nil, p)) == 0 {
		return nil
	}
	return &rules.Filter{
		Texts: []string{"node(s) had no available volume zone"},
		Judge: rules.ByShape(func(v columns.View) rules.Reasons {
			if p.Volumes.InZones(v.Labels) {
				return 0
			}
			return 1
		}),
	}
}
