package plan

import "fmt"

// Values of --pod-network (how Pods of different nodes reach each other) and --service-proxy (what forwards
// Service traffic). Others leaves either to software that is installed on the mesh.
const (
	Routes   = "routes"
	VXLAN    = "vxlan"
	NFTables = "nftables"
	Others   = "none"
)

// CheckPodNetwork validates the value of --pod-network.
func CheckPodNetwork(text string) error {
	if text != Routes && text != VXLAN && text != Others {
		return fmt.Errorf("--pod-network: %q must be routes, vxlan or none", text)
	}
	return nil
}

// CheckServiceProxy validates the value of --service-proxy.
func CheckServiceProxy(text string) error {
	if text != NFTables && text != Others {
		return fmt.Errorf("--service-proxy: %q must be nftables or none", text)
	}
	return nil
}

// NetworkInput holds what DecideNetwork decides from.
type NetworkInput struct {
	// PodNetwork is Routes, VXLAN or Others, ServiceProxy is NFTables or Others.
	PodNetwork, ServiceProxy string
	// Nodes is the number of nodes.
	Nodes int
}

// Network says what keel does for the network of a mesh, and what it can wait for.
type Network struct {
	// Masquerade is set if traffic that other nodes send beyond the machine leaves with the machine's address.
	Masquerade bool
	// PodsStart is set if Pods start without software that others install, Names if CoreDNS is reachable and can
	// reach the apiserver.
	PodsStart, Names bool
}

// DecideNetwork makes keel wait for nothing that depends on a network or proxy installed by others.
func DecideNetwork(in NetworkInput) Network {
	pods := in.Nodes > 0 && in.PodNetwork != Others
	return Network{Masquerade: in.Nodes > 1, PodsStart: pods, Names: pods && in.ServiceProxy != Others}
}
