// Package nodevolumelimits keeps Pods from nodes that take no more volumes of a CSI driver.
package nodevolumelimits

import (
	"encoding/binary"
	"slices"

	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/rules"
	"keelson.dev/services/scheduler/internal/volumes"
)

// Rule refuses nodes that would have more volumes of a driver than their CSINode says that they take.
func Rule() rules.Rule { return rules.Rule{Name: "NodeVolumeLimits", Key: key, Filter: filter} }

func key(b []byte, p rules.Pod) []byte {
	if p.Volumes == nil {
		return b
	}
	for _, f := range p.Volumes.Fresh {
		b = binary.AppendUvarint(append(append(b, f.Driver...), 0), uint64(f.Count))
	}
	for _, v := range p.Volumes.Shared {
		b = append(append(append(append(append(b, 1), v.Driver...), 0), v.Handle...), 0)
	}
	return b
}

// driver is what a Pod brings to a node of a driver.
type driver struct {
	volumes.Fresh
	shared []columns.Volume
}

func filter(p rules.Pod) *rules.Filter {
	if p.Volumes == nil || len(p.Volumes.Fresh)+len(p.Volumes.Shared) == 0 {
		return nil
	}
	brings := driversOf(p.Volumes)
	return &rules.Filter{
		Texts: []string{"node(s) exceed max volume count"},
		Judge: rules.ByRoom(func(n columns.Node) rules.Reasons {
			for _, d := range brings {
				if !n.VolumesFit(d.Driver, d.Count, d.shared) {
					return 1
				}
			}
			return 0
		}),
	}
}

func driversOf(d *volumes.Demand) (out []driver) {
	for _, fresh := range d.Fresh {
		out = append(out, driver{Fresh: fresh})
	}
	for _, v := range d.Shared {
		i := slices.IndexFunc(out, func(o driver) bool { return o.Driver == v.Driver })
		if i < 0 {
			i = len(out)
			out = append(out, driver{Fresh: volumes.Fresh{Driver: v.Driver}})
		}
		out[i].shared = append(out[i].shared, v)
	}
	return out
}
