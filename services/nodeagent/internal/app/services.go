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

// The programs that may carry the traffic of Services.
const (
	proxyNftables = "nftables"
	proxyNone     = "none"
)

// buildProxy builds the part that carries Services' traffic, if this agent does.
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

// carryServices runs until ctx ends. An agent that does not carry Services removes what an earlier one has left.
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

// observeNode passes a state of the Node to the parts that follow it.
func (a *agent) observeNode(n *corev1.Node) {
	a.node.Observe(n)
	a.drivers.Look()
	if a.proxy != nil {
		a.proxy.SetNode(proxyNode(n, a.kept, a.clusterRanges()))
		a.proxy.SetLeaving(health.Leaving(n))
	}
}

// proxyNode returns what the Service proxy needs of a Node. It ignores what cannot be parsed: this agent did not
// write it.
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

// clusterRanges returns the ranges of the cluster's Pods and Services, as far as the flags name them.
func (c *Config) clusterRanges() []netip.Prefix {
	var out []netip.Prefix
	for _, text := range slices.Concat(c.PodNetwork.ClusterCIDRs, c.ServiceRanges) {
		if prefix, err := netip.ParsePrefix(text); err == nil {
			out = append(out, prefix.Masked())
		}
	}
	return out
}

// serviceReport returns what the kernel has for a Service; false if this agent carries no Services.
func (a *agent) serviceReport(namespace, name string) (any, bool) {
	if a.proxy == nil {
		return nil, false
	}
	return a.proxy.Report(namespace, name), true
}
