package plan

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
)

// NodeSettings are what every machine of a mesh has to know of it to run a node.
type NodeSettings struct {
	// Version is raised when an older keel could not follow them.
	Version int `json:"version"`
	// Pod and Service are the mesh's ranges.
	Pod     Range `json:"pods"`
	Service Range `json:"services"`
	// PodNetwork, ServiceProxy, DNS and Domain are those of the mesh's record.
	PodNetwork   string `json:"podNetwork"`
	ServiceProxy string `json:"serviceProxy"`
	DNS          string `json:"dns"`
	Domain       string `json:"clusterDomain"`
	// VXLAN is the number of the network between the nodes' Pods.
	VXLAN int `json:"vxlan"`
}

// NodeSettingsName is the ConfigMap of kube-system that has them, NodeSettingsKey where in it.
const (
	NodeSettingsName = "keel-config"
	NodeSettingsKey  = "nodes"
)

// nodeSettingsVersion is the one that this keel writes and follows.
const nodeSettingsVersion = 1

// Text is what machines that join are given.
func (s NodeSettings) Text() (string, error) {
	s.Version = nodeSettingsVersion
	text, err := json.Marshal(s)
	if err != nil {
		return "", fmt.Errorf("writing the settings of nodes: %w", err)
	}
	return string(text), nil
}

// ParseNodeSettings reads what Text has written, perhaps of another version of keel.
func ParseNodeSettings(text string) (NodeSettings, error) {
	var s NodeSettings
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return s, fmt.Errorf("reading the mesh's settings of nodes: %w", err)
	}
	switch {
	case s.Version != nodeSettingsVersion:
		return s, fmt.Errorf("the mesh's settings of nodes have version %d, and this keel knows version %d: use the "+
			"keel of the mesh", s.Version, nodeSettingsVersion)
	case !s.Pod.IsValid() || !s.Service.IsValid() || s.Domain == "" || s.VXLAN <= 0:
		return s, fmt.Errorf("the mesh's settings of nodes lack ranges, domain or network: run keel init there again")
	}
	for _, err := range []error{CheckPodNetwork(s.PodNetwork), CheckServiceProxy(s.ServiceProxy), CheckDNS(s.DNS)} {
		if err != nil {
			return s, fmt.Errorf("reading the mesh's settings of nodes: %w", err)
		}
	}
	return s, nil
}

// NodeAddressInput is what the address of a worker's node depends on.
type NodeAddressInput struct {
	// Asked is what --node-ip says, Recorded the address of an earlier run; either may be missing.
	Asked, Recorded netip.Addr
	// Addresses are the machine's own, Source that of them from which it reaches the apiserver.
	Addresses []netip.Addr
	Source    netip.Addr
}

// DecideNodeAddress keeps the address of an earlier run while the machine has it, and otherwise takes the one that the
// apiserver's machine can answer to.
func DecideNodeAddress(in NodeAddressInput) (netip.Addr, error) {
	own := func(address netip.Addr) bool { return slices.Contains(in.Addresses, address) }
	switch {
	case in.Asked.IsValid() && !own(in.Asked):
		return in.Asked, fmt.Errorf("--node-ip: this machine does not have %s: its addresses are %v", in.Asked,
			in.Addresses)
	case in.Asked.IsValid():
		return in.Asked, nil
	case own(in.Recorded):
		return in.Recorded, nil
	case own(in.Source):
		return in.Source, nil
	}
	return in.Source, fmt.Errorf("this machine reaches the apiserver from %s, where nobody else reaches a node: name "+
		"an address of its own by --node-ip, of %v", in.Source, in.Addresses)
}

// worker tells whether the machine runs a node alone.
func (in ProcessInput) worker() bool { return in.Server != "" }

// vxlan is the number of the network between the nodes' Pods.
func (in ProcessInput) vxlan() int {
	if in.worker() || in.VXLAN != 0 {
		return in.VXLAN
	}
	return in.Layout.Number()
}

// agentKubeconfig is by what a node's agent reaches the apiserver. A worker's agent writes it itself.
func (in ProcessInput) agentKubeconfig(node string) string {
	if in.worker() {
		return in.Layout.Node(node).Kubeconfig()
	}
	return in.Layout.Kubeconfig(node)
}

// agentCertificates are the flags of the certificates of a node's agent. One on a worker asks the API for both of its
// own: there is no key of the authority.
func (in ProcessInput) agentCertificates(node string) []string {
	if in.worker() {
		return []string{"--bootstrap-kubeconfig=" + in.Layout.Node(node).BootstrapKubeconfig(), "--rotate-certificates",
			"--rotate-server-certificates"}
	}
	return []string{"--tls-cert-file=" + in.Layout.PKI(node+nodeServingCertificate+".crt"),
		"--tls-private-key-file=" + in.Layout.PKI(node+nodeServingCertificate+".key")}
}
