package serviceproxy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Prepare switches on what the kernel needs to lead packets on: forwarding, and that what Pods of one bridge send each
// other comes by the firewall, without which answers would bear the Pod's address and not the Service's. Forwarding of
// IPv6 makes a machine ignore router advertisements: it is switched on only if Pods have IPv6 addresses.
func Prepare(n Node) error {
	err := set("/proc/sys/net/ipv4/ip_forward", false)
	for _, r := range n.PodRanges {
		if r.Addr().Is6() {
			err = errors.Join(err, set("/proc/sys/net/ipv6/conf/all/forwarding", false))
		}
	}
	return errors.Join(err, set("/proc/sys/net/bridge/bridge-nf-call-iptables", true),
		set("/proc/sys/net/bridge/bridge-nf-call-ip6tables", true))
}

// set switches a setting of the kernel on. One that is optional may be missing.
func set(path string, optional bool) error {
	err := os.WriteFile(path, []byte("1"), 0)
	if err == nil || optional && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("switching on %s: %w", path, err)
}
