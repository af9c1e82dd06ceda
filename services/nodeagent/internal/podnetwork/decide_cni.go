package podnetwork

import (
	"encoding/json"
	"fmt"
	"net/netip"

	"keelson.dev/kit/keptport"
)

// hostPortPlugin is the program that forwards ports of the machine to Pods.
const hostPortPlugin = "keelson-hostport"

// CNI is what the configuration of the network plugins depends on.
type CNI struct {
	Bridge string
	// AddressesDir is where host-local records the allocated addresses; empty for its own default.
	AddressesDir string
	// PortTable is the firewall table of the ports that lead to Pods; empty means that no ports do.
	PortTable string
	// Kept are the ports of the machine that lead to no Pod.
	Kept []keptport.Port
	// Guard means that each Pod may use only its own addresses, enforced by rules in a table of the same name.
	Guard bool
}

// plugin is one plugin of the chain, with the fields that ours use.
type plugin struct {
	Type         string          `json:"type"`
	Bridge       string          `json:"bridge,omitempty"`
	IsGateway    bool            `json:"isGateway,omitempty"`
	HairpinMode  bool            `json:"hairpinMode,omitempty"`
	MTU          int             `json:"mtu,omitempty"`
	IPAM         *ipam           `json:"ipam,omitempty"`
	Table        string          `json:"table,omitempty"`
	Kept         []keptport.Port `json:"kept,omitempty"`
	Guard        bool            `json:"guard,omitempty"`
	Capabilities map[string]bool `json:"capabilities,omitempty"`
}

type ipam struct {
	Type    string         `json:"type"`
	DataDir string         `json:"dataDir,omitempty"`
	Ranges  [][]ipamRange  `json:"ranges"`
	Routes  []ipamOutbound `json:"routes"`
}

type ipamRange struct {
	Subnet  netip.Prefix `json:"subnet"`
	Gateway netip.Addr   `json:"gateway"`
}

type ipamOutbound struct {
	Destination string `json:"dst"`
}

// Config returns the configuration of the network of the node's Pods: the standard plugins bridge and host-local,
// and our own plugin for ports of the machine.
func (c CNI) Config(plan Plan) (string, error) {
	addresses := &ipam{Type: "host-local", DataDir: c.AddressesDir}
	for _, gateway := range plan.Gateways {
		everywhere := "0.0.0.0/0"
		if gateway.Addr().Is6() {
			everywhere = "::/0"
		}
		addresses.Ranges = append(addresses.Ranges, []ipamRange{{gateway.Masked(), gateway.Addr()}})
		addresses.Routes = append(addresses.Routes, ipamOutbound{everywhere})
	}
	plugins := []plugin{{Type: "bridge", Bridge: c.Bridge, IsGateway: true, HairpinMode: true, MTU: plan.MTU,
		IPAM: addresses}}
	if c.PortTable != "" {
		plugins = append(plugins, plugin{Type: hostPortPlugin, Table: c.PortTable, Kept: c.Kept, Guard: c.Guard,
			Capabilities: map[string]bool{"portMappings": true}})
	}
	text, err := json.MarshalIndent(struct {
		Version string   `json:"cniVersion"`
		Name    string   `json:"name"`
		Plugins []plugin `json:"plugins"`
	}{"1.0.0", c.Bridge, plugins}, "", "  ")
	if err != nil {
		return "", fmt.Errorf("rendering the network configuration: %w", err)
	}
	return string(text) + "\n", nil
}
