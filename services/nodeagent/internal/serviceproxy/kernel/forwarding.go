package kernel

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"keelson.dev/services/nodeagent/internal/serviceproxy/plan"
)

// EnableForwarding switches on what the kernel needs to forward packets: forwarding, and that packets between Pods
// of one bridge pass the firewall, without which answers would bear the Pod's address instead of the Service's.
// IPv6 forwarding makes a machine ignore router advertisements: it is switched on only if Pods have IPv6 addresses.
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

// enable switches on a kernel setting. An optional one may be missing.
func enable(path string, optional bool) error {
	err := os.WriteFile(path, []byte("1"), 0)
	if err == nil || optional && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("switching on %s: %w", path, err)
}
