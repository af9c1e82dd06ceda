package columns

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Port is a host port that a Pod claims.
type Port struct {
	IP       string
	Protocol corev1.Protocol
	Number   int32
}

// anyIP is the address of all interfaces: it conflicts with each single one.
const anyIP = "0.0.0.0"

// heldPort is a port of a node and how many Pods hold it; more than one only if a user bound them by hand.
type heldPort struct {
	Port
	holders int
}

// Conflicts reports whether both ports cannot be served by one node.
func (p Port) Conflicts(o Port) bool {
	return p.Number == o.Number && p.Protocol == o.Protocol && (p.IP == o.IP || p.IP == anyIP || o.IP == anyIP)
}

// hold notes or releases a Pod's ports.
func (s *State) hold(slot Slot, ports []Port, take bool) {
	held := s.ports[slot]
	for _, p := range ports {
		i := slices.IndexFunc(held, func(h heldPort) bool { return h.Port == p })
		switch {
		case take && i < 0:
			held = append(held, heldPort{Port: p, holders: 1})
		case take:
			held[i].holders++
		case held[i].holders > 1:
			held[i].holders--
		default:
			held = slices.Delete(held, i, i+1)
		}
	}
	if len(held) == 0 {
		delete(s.ports, slot)
		return
	}
	s.ports[slot] = held
}

// hostPorts returns the host ports of the Pod's containers and sidecars: those that stay in use while it runs.
func hostPorts(p *corev1.Pod) []Port {
	var ports []Port
	add := func(c *corev1.Container) {
		for _, cp := range c.Ports {
			if cp.HostPort <= 0 {
				continue
			}
			port := Port{IP: cp.HostIP, Protocol: cp.Protocol, Number: cp.HostPort}
			if port.IP == "" {
				port.IP = anyIP
			}
			if port.Protocol == "" {
				port.Protocol = corev1.ProtocolTCP
			}
			ports = append(ports, port)
		}
	}
	for i := range p.Spec.InitContainers {
		c := &p.Spec.InitContainers[i]
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			add(c)
		}
	}
	for i := range p.Spec.Containers {
		add(&p.Spec.Containers[i])
	}
	slices.SortFunc(ports, func(a, b Port) int {
		return cmp.Or(cmp.Compare(a.Number, b.Number), strings.Compare(string(a.Protocol), string(b.Protocol)),
			strings.Compare(a.IP, b.IP))
	})
	return slices.Compact(ports)
}
