package kernel

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"keelson.dev/services/nodeagent/internal/serviceproxy/plan"
)

// EnableForwarding switches on what the kernel needs to lead packets on: forwarding, and that what Pods of one bridge
// send each other comes by the firewall, without which answers would bear the Pod's address and not the Service's.
// Forwarding of IPv6 makes a machine ignore router advertisements: it is switched on only if Pods have IPv6 addresses.
func EnableForwarding(n plan.Node) error {
	err := enable("/proc/sys/net/ipv4/ip_forward", false)
	for _, r := range n.PodRanges {
		if r.Addr().Is6() {
			err = errors.Join(err, enable("/proc/sys/net/ipv6/conf/all/forwarding", false))
		}
	}
	return errors.Join(err, enable("/proc/sys/net/bridge/bridge-nf-call-iptables", true),
		enable("/proc/sys/net/bridge/bridge-nf-call-ip6tables", true))
}

// enable switches a setting of the kernel on. One that is optional may be missing.
func enable(path string, optional bool) error {
	err := os.WriteFile(path, []byte("1"), 0)
	if err == nil || optional && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("switching on %s: %w", path, err)
}
