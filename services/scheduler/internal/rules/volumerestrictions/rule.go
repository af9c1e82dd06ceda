// Package volumerestrictions keeps a claim of access mode ReadWriteOncePod to one Pod.
package volumerestrictions

import (
	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/rules"
)

// Rule refuses every node while another Pod that has a node has such a claim of the Pod.
func Rule() rules.Rule {
	return rules.Rule{Name: "VolumeRestrictions", Key: key, Filter: filter}
}

func key(b []byte, p rules.Pod) []byte {
	if p.Volumes != nil && p.Volumes.InUse {
		b = append(b, 1)
	}
	return b
}

func filter(p rules.Pod) *rules.Filter {
	if p.Volumes == nil || !p.Volumes.InUse {
		return nil
	}
	return &rules.Filter{
		Texts: []string{"node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode"},
		Pins:  &rules.Pins{},
		Judge: rules.ByShape(func(columns.View) rules.Reasons { return 1 }),
	}
}
