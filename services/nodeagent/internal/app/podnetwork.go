package app

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"keelson.dev/kit/introspect"
	"keelson.dev/services/nodeagent/internal/podnetwork"
)

// newPodNetwork returns the network of this node's Pods; nil if another program provides it.
func (a *agent) newPodNetwork() (*podnetwork.Network, error) {
	s := &a.PodNetwork
	if a.Simulated || podnetwork.Mode(s.Mode) == podnetwork.None {
		return nil, nil
	}
	cluster, err := s.Cluster()
	if err != nil {
		return nil, err
	}
	guard := podnetwork.CanGuard(s.PortTable)
	if !guard {
		a.Log.Warn(
			"Pods of this node are not kept from claiming each other's addresses: the kernel has no nf_tables for " +
				"network devices, or --host-port-table is empty",
		)
	}
	return podnetwork.New(podnetwork.Config{
		Nodes:     a.watches.followNodes(),
		Log:       a.Log,
		NodeName:  a.NodeName,
		Mode:      podnetwork.Mode(s.Mode),
		Cluster:   cluster,
		ConfigDir: s.ConfigDir,
		Changed:   a.networkChanged,
		CNI: podnetwork.CNI{Bridge: s.Bridge, AddressesDir: a.AddressesDir, PortTable: s.PortTable,
			Kept: a.kept, Guard: guard},
		VXLANID: s.VXLANID,
	})
}

// keepStreams keeps Pods from the address at which the runtime serves sessions. Only the agent's own network
// forwards ports to Pods.
func (a *agent) keepStreams(at netip.AddrPort) error {
	if a.podNetwork == nil {
		return nil
	}
	return a.podNetwork.KeepStreams(at)
}

// runtimeNotices bounds how long the runtime takes to find its new configuration.
const runtimeNotices = 5 * time.Second

// networkChanged reports the state of the network: at once, and again when the runtime has noticed it.
func (a *agent) networkChanged(ctx context.Context) {
	a.node.Look()
	if a.podNetwork.Problem() != "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, runtimeNotices)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		status, err := a.runtime.Status(ctx)
		if err == nil && status.NetworkProblem == "" {
			break
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
	a.node.Look()
}

// networkReady is a readiness check.
func (a *agent) networkReady() error {
	if problem := a.podNetwork.Problem(); problem != "" {
		return errors.New(problem)
	}
	return nil
}

// explainNode describes the state of the network of this node's Pods.
func (a *agent) explainNode(_ context.Context, _, name string) (introspect.Explanation, bool) {
	if name != a.NodeName {
		return introspect.Explanation{}, false
	}
	if problem := a.podNetwork.Problem(); problem != "" {
		return introspect.Explanation{Summary: "Pods have no network: " + problem}, true
	}
	out := introspect.Explanation{Summary: "Pods have their network, and reach those of all other nodes"}
	others := a.podNetwork.Others()
	if len(others) > 0 {
		out.Summary = "Pods have their network, but do not reach everywhere"
	}
	for _, problem := range others {
		out.Facts = append(out.Facts, introspect.Fact{Reason: "NotReached", Message: problem})
	}
	return out, true
}
