package hostport

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/cni/pkg/version"

	"keelson.dev/cli/internal/linkguard"
	"keelson.dev/cli/internal/plan"
	"keelson.dev/kit/keptport"
)

// Type is the plugin's name in a network configuration and that of its program.
const Type = plan.HostPortPlugin

// config is the configuration that the plugin reads from standard input.
type config struct {
	types.PluginConf
	// Table is the firewall table that holds the ports.
	Table string `json:"table"`
	// Kept are the ports of the machine that no Pod can have.
	Kept []keptport.Port `json:"kept"`
	// Guard is set if the Pod may only use the addresses that it was given.
	Guard         bool `json:"guard"`
	RuntimeConfig struct {
		PortMappings []Mapping `json:"portMappings"`
	} `json:"runtimeConfig"`
}

// Main handles the CNI call that the environment describes.
func Main() {
	calls := skel.CNIFuncs{Add: onAdd, Check: onCheck, Del: onDel}
	skel.PluginMainFuncs(calls, version.All, Type+": leads ports of the machine to Pods")
}

func parse(data []byte) (*config, error) {
	c := &config{}
	if err := json.Unmarshal(data, c); err != nil {
		return nil, fmt.Errorf("reading the network configuration: %w", err)
	}
	if c.Table == "" {
		return nil, errors.New("table: the network configuration must name the firewall table")
	}
	if err := version.ParsePrevResult(&c.PluginConf); err != nil {
		return nil, fmt.Errorf("prevResult: %w", err)
	}
	return c, nil
}

// onAdd passes on the result of the plugins before it.
func onAdd(args *skel.CmdArgs) error {
	c, err := parse(args.StdinData)
	if err != nil {
		return err
	}
	if c.PrevResult == nil {
		return errors.New("prevResult: a plugin that gives the Pod its address must come before " + Type)
	}
	if c.Guard {
		link, err := c.link(args.IfName)
		if err != nil {
			return err
		}
		if err := linkguard.Set(c.Table, args.ContainerID, link); err != nil {
			return err
		}
	}
	if len(c.RuntimeConfig.PortMappings) > 0 {
		forwards, pod, err := c.forwards()
		if err != nil {
			return err
		}
		if err := add(c.Table, args.ContainerID, forwards, pod, c.Kept); err != nil {
			return err
		}
	}
	return types.PrintResult(c.PrevResult, c.CNIVersion)
}

func onDel(args *skel.CmdArgs) error {
	c, err := parse(args.StdinData)
	if err != nil {
		return err
	}
	var unguarded, closed error
	if c.Guard {
		unguarded = linkguard.Remove(c.Table, args.ContainerID)
	}
	if len(c.RuntimeConfig.PortMappings) > 0 {
		closed = remove(c.Table, args.ContainerID)
	}
	return errors.Join(unguarded, closed)
}

func onCheck(args *skel.CmdArgs) error {
	c, err := parse(args.StdinData)
	if err != nil || len(c.RuntimeConfig.PortMappings) == 0 {
		return err
	}
	if _, rules, err := owned(c.Table, args.ContainerID); err != nil || len(rules) == 0 {
		return errors.Join(fmt.Errorf("the firewall table %s holds no port of the Pod", c.Table), err)
	}
	return nil
}

// link returns the machine's end of the link whose other end has that name in the Pod.
func (c *config) link(name string) (linkguard.Link, error) {
	result, err := current.NewResultFromResult(c.PrevResult)
	if err != nil {
		return linkguard.Link{}, fmt.Errorf("prevResult: %w", err)
	}
	var link linkguard.Link
	for _, i := range result.Interfaces {
		hardware, err := net.ParseMAC(i.Mac)
		switch {
		case i.Sandbox == "":
			link.Name = i.Name // the plugin bridge names its bridge first
		case i.Name == name && err == nil && len(hardware) == len(link.Hardware):
			link.Hardware = [6]byte(hardware)
		}
	}
	for _, ip := range result.IPs {
		if address, ok := netip.AddrFromSlice(ip.Address.IP); ok {
			link.Addresses = append(link.Addresses, address.Unmap())
		}
	}
	if link.Name == "" || link.Hardware == [6]byte{} || len(link.Addresses) == 0 {
		return linkguard.Link{}, fmt.Errorf(
			"prevResult: it must name both ends of the link %s, the hardware address of "+
				"the Pod's, and its IP addresses",
			name,
		)
	}
	return link, nil
}

// forwards returns the ports to forward and the Pod's address with its network.
func (c *config) forwards() ([]Forward, netip.Prefix, error) {
	result, err := current.NewResultFromResult(c.PrevResult)
	if err != nil {
		return nil, netip.Prefix{}, fmt.Errorf("prevResult: %w", err)
	}
	for _, ip := range result.IPs {
		address, ok := netip.AddrFromSlice(ip.Address.IP.To4())
		if !ok {
			continue
		}
		bits, _ := ip.Address.Mask.Size()
		forwards, err := Forwards(c.RuntimeConfig.PortMappings, address, c.Kept)
		return forwards, netip.PrefixFrom(address, bits), err
	}
	return nil, netip.Prefix{}, errors.New("prevResult: the Pod has no IPv4 address")
}
