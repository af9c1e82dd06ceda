package serviceproxy

import (
	"net/netip"
	"slices"
	"time"

	"keelson.dev/services/nodeagent/internal/serviceproxy/plan"
)

// Report describes what the kernel has for a Service.
type Report struct {
	// Programmed means that the Service's traffic is carried as its newest objects specify.
	Programmed bool `json:"programmed"`
	// Since is when that became so.
	Since *time.Time `json:"since,omitempty"`
	// Services is how many Services the node carries.
	Services int          `json:"services"`
	Ports    []PortReport `json:"ports"`
	// Problems are sentences about what was left out, and why.
	Problems []string `json:"problems,omitempty"`
}

// PortReport is one port of a Service in one address family.
type PortReport struct {
	Name       string   `json:"name"`
	Protocol   string   `json:"protocol"`
	ClusterIPs []string `json:"clusterIPs"`
	Port       uint16   `json:"port"`
	NodePort   uint16   `json:"nodePort,omitempty"`
	Endpoints  []string `json:"endpoints"`
}

// Report returns what the kernel has for a Service.
func (p *Proxy) Report(namespace, name string) Report {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := namespace + "/" + name
	out := Report{Services: p.state.Len(), Ports: []PortReport{}, Problems: slices.Clone(p.reported[key])}
	planned, exists := p.state.Plan(key)
	if p.failure != nil {
		out.Problems = append(out.Problems, p.failure.Error())
	}
	if since, done := p.programmed[key]; done && exists && p.failure == nil && !p.pending.has(key) {
		since = since.UTC()
		out.Programmed, out.Since = true, &since
	}
	for i := range planned.Ports {
		port := &planned.Ports[i]
		r := PortReport{Name: port.Name, Protocol: string(port.Protocol), ClusterIPs: []string{}, Port: port.Number,
			NodePort: port.NodePort, Endpoints: []string{}}
		for _, f := range port.Frontends {
			if f.Rank == plan.ByClusterIP {
				r.ClusterIPs = append(r.ClusterIPs, f.Addr.String())
			}
		}
		for _, e := range union(port.ClusterEndpoints, port.LocalEndpoints) {
			r.Endpoints = append(r.Endpoints, e.String())
		}
		out.Ports = append(out.Ports, r)
	}
	return out
}

func union(a, b []netip.AddrPort) []netip.AddrPort {
	out := append(slices.Clone(a), b...)
	slices.SortFunc(out, netip.AddrPort.Compare)
	return slices.Compact(out)
}
