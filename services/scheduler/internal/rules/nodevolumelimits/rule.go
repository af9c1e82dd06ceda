// Package nodevolumelimits keeps Pods from nodes that take no more volumes of a CSI driver, or lack it.
//
//keelson:decision
package nodevolumelimits

import (
	"encoding/binary"
	"slices"

	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/rules"
	"keelson.dev/services/scheduler/internal/volumes"
)

// Rule refuses nodes that would have more volumes of a driver than their CSINode says that they take, and those that
// lack a driver which wants that.
func Rule() rules.Rule { return rules.Rule{Name: "NodeVolumeLimits", Key: key, Filter: filter} }

func key(b []byte, p rules.Pod) []byte {
	if p.Volumes == nil {
		return b
	}
	for _, f := range p.Volumes.Fresh {
		b = binary.AppendUvarint(append(append(b, f.Driver...), 0), uint64(f.Count))
	}
	for _, driver := range p.Volumes.Required {
		b = append(append(append(b, 2), driver...), 0)
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
	brings, required := driversOf(p.Volumes), p.Volumes.Required
	texts := []string{"node(s) exceed max volume count"}
	for _, driver := range required {
		if len(texts) < rules.MaxTexts {
			texts = append(texts, driver+" CSI driver is not installed on the node")
		}
	}
	return &rules.Filter{
		Texts:     texts,
		Incurable: ^rules.Reasons(1),
		Judge: rules.ByRoom(func(n columns.Node) rules.Reasons {
			for i, driver := range required {
				if !n.HasDriver(driver) {
					return 1 << min(i+1, len(texts)-1) // the first alone, as the field tells it
				}
			}
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
