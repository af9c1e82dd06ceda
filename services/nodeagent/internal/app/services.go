package app

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/nodeagent/internal/serviceproxy"
)

// Who carries the traffic of Services.
const (
	proxyNftables = "nftables"
	proxyNone     = "none"
)

// buildProxy makes the part that carries Services' traffic, if this agent does.
func (a *agent) buildProxy() error {
	if a.Simulated || a.ServiceProxy != proxyNftables {
		return nil
	}
	if err := a.watches.followSlices(); err != nil {
		return fmt.Errorf("following EndpointSlices: %w", err)
	}
	a.proxy = serviceproxy.New(serviceproxy.Config{
		Table: a.ServiceTable, Services: a.watches.service, Slices: a.watches.slices, Log: a.Log,
	})
	a.Metrics.MustRegister(a.proxy.Metrics()...)
	return nil
}

// carryServices runs until ctx ends. An agent that does not carry Services takes away what one before has left.
func (a *agent) carryServices(ctx context.Context) {
	switch {
	case a.proxy != nil:
		var parts sync.WaitGroup
		if a.ServiceHealth != "" {
			parts.Go(func() { a.proxy.ServeHealth(ctx, a.ServiceHealth) })
		}
		a.proxy.Run(ctx)
		parts.Wait()
	case a.ServiceProxy == proxyNone && !a.Simulated:
		if err := serviceproxy.Remove(a.ServiceTable); err != nil {
			a.Log.Warn("--service-proxy=none: the rules of an agent before are left", zap.Error(err))
		}
	}
}

// observeNode hands what is new of the node to the parts that follow it.
func (a *agent) observeNode(n *corev1.Node) {
	a.node.Observe(n)
	a.drivers.Look()
	if a.proxy != nil {
		a.proxy.SetNode(proxyNode(n, a.REST.Host, a.ownPorts()))
		a.proxy.SetLeaving(serviceproxy.Leaving(n))
	}
}

// ownPorts are those at which this agent is asked at the node's addresses.
func (a *agent) ownPorts() []uint16 {
	ports := []uint16{uint16(a.Port)}
	if _, port, err := net.SplitHostPort(a.ServiceHealth); err == nil {
		if number, err := strconv.ParseUint(port, 10, 16); err == nil {
			ports = append(ports, uint16(number))
		}
	}
	return ports
}

// proxyNode is what the Service proxy needs to know of a Node, whose agent serves at the ports and reaches the API by
// the host. What cannot be parsed was not written by this agent.
func proxyNode(n *corev1.Node, host string, ports []uint16) serviceproxy.Node {
	out := serviceproxy.Node{Name: n.Name, Zone: n.Labels[corev1.LabelTopologyZone]}
	for _, address := range n.Status.Addresses {
		if ip, err := netip.ParseAddr(address.Address); err == nil && address.Type == corev1.NodeInternalIP {
			out.Addresses = append(out.Addresses, ip.Unmap())
			for _, port := range ports {
				out.Kept = append(out.Kept, netip.AddrPortFrom(ip.Unmap(), port))
			}
		}
	}
	if api, ok := apiAddress(host); ok {
		out.Kept = append(out.Kept, api)
	}
	for _, text := range n.Spec.PodCIDRs {
		if prefix, err := netip.ParsePrefix(text); err == nil {
			out.PodRanges = append(out.PodRanges, prefix.Masked())
		}
	}
	return out
}

// apiAddress is the address in the host of a client's configuration; false if a name stands there.
func apiAddress(host string) (netip.AddrPort, bool) {
	if !strings.Contains(host, "://") {
		host = "https://" + host
	}
	at, err := url.Parse(host)
	if err != nil {
		return netip.AddrPort{}, false
	}
	ip, err := netip.ParseAddr(at.Hostname())
	if err != nil {
		return netip.AddrPort{}, false
	}
	ports := map[string]uint16{"http": 80, "https": 443}
	port, err := strconv.ParseUint(at.Port(), 10, 16)
	if at.Port() == "" {
		port, err = uint64(ports[at.Scheme]), nil
	}
	return netip.AddrPortFrom(ip.Unmap(), uint16(port)), err == nil
}

// serviceReport says what the kernel has for a Service; false if this agent carries none.
func (a *agent) serviceReport(namespace, name string) (any, bool) {
	if a.proxy == nil {
		return nil, false
	}
	return a.proxy.Report(namespace, name), true
}
