package noderestriction

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/conditions"
)

// claims are what a Node newly says that it has and that two Nodes must not have both.
type claims struct {
	ranges     []string
	providerID string
	addresses  []string
}

// newClaims are those of a Node that it has not had before; old is nil for a new Node.
func newClaims(updated, old *corev1.Node) claims {
	if old == nil {
		old = &corev1.Node{}
	}
	var c claims
	for _, text := range rangesOf(updated) {
		if !slices.Contains(rangesOf(old), text) {
			c.ranges = append(c.ranges, text)
		}
	}
	if updated.Spec.ProviderID != old.Spec.ProviderID {
		c.providerID = updated.Spec.ProviderID
	}
	had := addressesOf(old)
	for _, address := range addressesOf(updated) {
		if !slices.Contains(had, address) {
			c.addresses = append(c.addresses, address)
		}
	}
	return c
}

func (c claims) none() bool { return len(c.ranges) == 0 && c.providerID == "" && len(c.addresses) == 0 }

// check lets a Node have what no other Node has. The allocator is who gives Nodes their ranges of Pods; empty where
// each Node is told its own. A Node that was not heard of for long gives up its addresses, which its machine may have
// lost to another, and keeps its Pods' ranges.
func (c claims) check(node string, others []corev1.Node, allocator string) error {
	if len(c.ranges) > 0 && allocator != "" {
		return fmt.Errorf("node %q is not allowed to give itself the range of Pods %s: %s gives Nodes theirs", node,
			strings.Join(c.ranges, ","), allocator)
	}
	for i := range others {
		other := &others[i]
		if other.Name == node {
			continue
		}
		if err := c.checkRanges(node, other); err != nil {
			return err
		}
		if c.providerID != "" && c.providerID == other.Spec.ProviderID {
			return fmt.Errorf("node %q is not allowed to have the providerID %q: it is that of node %q", node,
				c.providerID, other.Name)
		}
		if err := c.checkAddresses(node, other); err != nil {
			return err
		}
	}
	return nil
}

func (c claims) checkRanges(node string, other *corev1.Node) error {
	for _, text := range c.ranges {
		for _, taken := range rangesOf(other) {
			if overlap(text, taken) {
				return fmt.Errorf(
					"node %q is not allowed to have the range of Pods %s: it overlaps %s of node %q",
					node,
					text,
					taken,
					other.Name,
				)
			}
		}
	}
	return nil
}

func (c claims) checkAddresses(node string, other *corev1.Node) error {
	taken := []string{strings.ToLower(other.Name)}
	if !conditions.NodeIsSilent(other.Status.Conditions) {
		taken = append(taken, addressesOf(other)...)
	}
	for _, address := range c.addresses {
		if slices.Contains(taken, address) {
			return fmt.Errorf("node %q is not allowed to have the address %s: it is that of node %q", node, address,
				other.Name)
		}
		for _, text := range rangesOf(other) {
			if overlap(address, text) {
				return fmt.Errorf(
					"node %q is not allowed to have the address %s: it is of the range of Pods %s of node %q",
					node,
					address,
					text,
					other.Name,
				)
			}
		}
	}
	return nil
}

// rangesOf are a Node's ranges of Pods as they are written.
func rangesOf(node *corev1.Node) []string {
	if len(node.Spec.PodCIDRs) == 0 && node.Spec.PodCIDR != "" {
		return []string{node.Spec.PodCIDR}
	}
	return node.Spec.PodCIDRs
}

// addressesOf are the addresses and names by which a Node says it is reached, each in one form.
func addressesOf(node *corev1.Node) []string {
	var out []string
	for _, a := range node.Status.Addresses {
		text := strings.ToLower(a.Address)
		if ip, err := netip.ParseAddr(text); err == nil {
			text = ip.Unmap().String()
		}
		out = append(out, text)
	}
	return out
}

// overlap reports whether two ranges, or an address and a range, have an address in common. Text that is neither
// overlaps nothing.
func overlap(a, b string) bool {
	first, err := prefixOf(a)
	second, err2 := prefixOf(b)
	return err == nil && err2 == nil && first.Overlaps(second)
}

func prefixOf(text string) (netip.Prefix, error) {
	if ip, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(ip, ip.BitLen()), nil
	}
	return netip.ParsePrefix(text)
}

// allocatorOf names who gives Nodes their ranges, from the one who holds its Lease.
func allocatorOf(lease, holder string) string {
	if holder == "" {
		return ""
	}
	return fmt.Sprintf("the controller nodeipam (%s, holder of the Lease %s)", holder, lease)
}
