package app

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/keptport"
	"keelson.dev/services/nodeagent/internal/serviceproxy"
	"keelson.dev/services/nodeagent/internal/serviceproxy/health"
	"keelson.dev/services/nodeagent/internal/serviceproxy/plan"
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
		Table: a.ServiceTable, Services: a.watches.service, Slices: a.watches.slices,
		Nodes: a.watches.followNodes(), Conntrack: a.Conntrack, Log: a.Log,
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
		a.proxy.SetNode(proxyNode(n, a.kept, a.clusterRanges()))
		a.proxy.SetLeaving(health.Leaving(n))
	}
}

// proxyNode is what the Service proxy needs to know of a Node. What cannot be parsed was not written by this agent.
func proxyNode(n *corev1.Node, kept []keptport.Port, ranges []netip.Prefix) plan.Node {
	out := plan.Node{Name: n.Name, Zone: n.Labels[corev1.LabelTopologyZone], KeptPorts: kept, ClusterRanges: ranges}
	for _, address := range n.Status.Addresses {
		if ip, err := netip.ParseAddr(address.Address); err == nil && address.Type == corev1.NodeInternalIP {
			out.Addresses = append(out.Addresses, ip.Unmap())
		}
	}
	for _, text := range n.Spec.PodCIDRs {
		if prefix, err := netip.ParsePrefix(text); err == nil {
			out.PodRanges = append(out.PodRanges, prefix.Masked())
		}
	}
	return out
}

// clusterRanges are those of the cluster's Pods and Services, as far as the flags tell them.
func (c *Config) clusterRanges() []netip.Prefix {
	var out []netip.Prefix
	for _, text := range slices.Concat(c.PodNetwork.ClusterCIDRs, c.ServiceRanges) {
		if prefix, err := netip.ParsePrefix(text); err == nil {
			out = append(out, prefix.Masked())
		}
	}
	return out
}

// serviceReport says what the kernel has for a Service; false if this agent carries none.
func (a *agent) serviceReport(namespace, name string) (any, bool) {
	if a.proxy == nil {
		return nil, false
	}
	return a.proxy.Report(namespace, name), true
}
