package plan

import "fmt"

// How Pods of different nodes reach each other, and who carries the traffic of Services. Others leaves either to what
// is installed on the mesh.
const (
	Routes   = "routes"
	VXLAN    = "vxlan"
	NFTables = "nftables"
	Others   = "none"
)

// CheckPodNetwork says what is wrong with the answer to how Pods reach each other.
func CheckPodNetwork(text string) error {
	if text != Routes && text != VXLAN && text != Others {
		return fmt.Errorf("--pod-network: %q must be routes, vxlan or none", text)
	}
	return nil
}

// CheckServiceProxy says what is wrong with the answer to who carries the traffic of Services.
func CheckServiceProxy(text string) error {
	if text != NFTables && text != Others {
		return fmt.Errorf("--service-proxy: %q must be nftables or none", text)
	}
	return nil
}

// NetworkInput is what the mesh's network depends on.
type NetworkInput struct {
	// PodNetwork is Routes, VXLAN or Others, ServiceProxy is NFTables or Others.
	PodNetwork, ServiceProxy string
	// Nodes is how many there are.
	Nodes int
}

// Network is what of the network is to be done for a mesh, and what can be waited for.
type Network struct {
	// Masquerade has what nodes beside the machine send beyond it leave under the machine's address.
	Masquerade bool
	// PodsStart says that Pods start without what others install, Names that CoreDNS is reached and reaches the
	// apiserver.
	PodsStart, Names bool
}

// DecideNetwork has a mesh that leaves its network to others wait for nothing of them.
func DecideNetwork(in NetworkInput) Network {
	pods := in.Nodes > 0 && in.PodNetwork != Others
	return Network{Masquerade: in.Nodes > 1, PodsStart: pods, Names: pods && in.ServiceProxy != Others}
}
