package plan

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
)

// NodeSettings are the settings of a mesh that every machine needs to run a node.
type NodeSettings struct {
	// Version is raised when an older keel could not apply them.
	Version int `json:"version"`
	// Pod and Service are the mesh's ranges.
	Pod     Range `json:"pods"`
	Service Range `json:"services"`
	// PodNetwork, ServiceProxy, DNS and Domain are those in the mesh's record.
	PodNetwork   string `json:"podNetwork"`
	ServiceProxy string `json:"serviceProxy"`
	DNS          string `json:"dns"`
	Domain       string `json:"clusterDomain"`
	// VXLAN is the VXLAN ID of the network between the nodes' Pods.
	VXLAN int `json:"vxlan"`
}

// NodeSettingsName is the ConfigMap in kube-system that holds them, NodeSettingsKey their key in it.
const (
	NodeSettingsName = "keel-config"
	NodeSettingsKey  = "nodes"
)

// nodeSettingsVersion is the version that this keel writes and reads.
const nodeSettingsVersion = 1

// Text returns the text that machines that join receive.
func (s NodeSettings) Text() (string, error) {
	s.Version = nodeSettingsVersion
	text, err := json.Marshal(s)
	if err != nil {
		return "", fmt.Errorf("writing the settings of nodes: %w", err)
	}
	return string(text), nil
}

// ParseNodeSettings parses the result of Text, perhaps written by another version of keel.
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

// NodeAddressInput holds what DecideNodeAddress decides from.
type NodeAddressInput struct {
	// Asked is the value of --node-ip, Recorded the address of an earlier run; either may be missing.
	Asked, Recorded netip.Addr
	// Addresses are the machine's addresses; Source is the address from which it reaches the apiserver.
	Addresses []netip.Addr
	Source    netip.Addr
}

// DecideNodeAddress keeps the address of an earlier run while the machine has it, and otherwise takes the address
// to which the apiserver's machine can reply.
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

// worker reports whether the machine runs a node and no control plane.
func (in ProcessInput) worker() bool { return in.Server != "" }

// vxlan returns the VXLAN ID of the network between the nodes' Pods.
func (in ProcessInput) vxlan() int {
	if in.worker() || in.VXLAN != 0 {
		return in.VXLAN
	}
	return in.Layout.Number()
}

// agentKubeconfig returns the path of the kubeconfig with which a node's agent reaches the apiserver. A worker's
// agent writes it itself.
func (in ProcessInput) agentKubeconfig(node string) string {
	if in.worker() {
		return in.Layout.Node(node).Kubeconfig()
	}
	return in.Layout.Kubeconfig(node)
}

// agentCertificates returns the certificate flags of a node's agent. The agent of a worker requests both of its
// certificates from the API, because the machine does not have the authority's key.
func (in ProcessInput) agentCertificates(node string) []string {
	if in.worker() {
		return []string{"--bootstrap-kubeconfig=" + in.Layout.Node(node).BootstrapKubeconfig(), "--rotate-certificates",
			"--rotate-server-certificates"}
	}
	return []string{"--tls-cert-file=" + in.Layout.PKI(node+nodeServingCertificate+".crt"),
		"--tls-private-key-file=" + in.Layout.PKI(node+nodeServingCertificate+".key")}
}
