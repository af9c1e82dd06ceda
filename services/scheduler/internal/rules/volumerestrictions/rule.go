// Package volumerestrictions keeps a claim of access mode ReadWriteOncePod to one Pod.
//
//keelson:decision
package volumerestrictions

import (
	"slices"

	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/rules"
)

// Rule refuses every node while another Pod that has a node has such a claim of the Pod. On the node of that Pod its
// removal cures this.
func Rule() rules.Rule {
	return rules.Rule{Name: "VolumeRestrictions", Key: key, Filter: filter}
}

func key(b []byte, p rules.Pod) []byte {
	if p.Volumes == nil {
		return b
	}
	for _, user := range p.Volumes.Users {
		b = append(append(append(append(b, user.UID...), 0), user.Node...), 0)
	}
	return b
}

func filter(p rules.Pod) *rules.Filter {
	if p.Volumes == nil || len(p.Volumes.Users) == 0 {
		return nil
	}
	users := p.Volumes.Users
	pins := &rules.Pins{}
	for _, user := range users {
		if !slices.Contains(pins.Names, user.Node) {
			pins.Names = append(pins.Names, user.Node)
		}
	}
	const text = "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode"
	return &rules.Filter{
		Texts:     []string{text, text},
		Pins:      pins,
		Incurable: elsewhere,
		Judge: rules.ByRoom(func(n columns.Node) (r rules.Reasons) {
			for _, user := range users {
				switch {
				case user.Node != n.Name():
					return elsewhere
				case !n.Lacks(user.UID):
					r = here
				}
			}
			return r
		}),
	}
}

// Where the other Pod is.
const (
	here rules.Reasons = 1 << iota
	elsewhere
)
