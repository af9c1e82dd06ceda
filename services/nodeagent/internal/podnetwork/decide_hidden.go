package podnetwork

import (
	"net/netip"
	"slices"
)

// hidden reports whether packets of a range of Pods leave the cluster under the machine's address: for IPv6 only
// those of ranges to which networks outside have no route, fc00::/7. Pods with global addresses keep theirs.
func hidden(pods netip.Prefix, six bool) bool {
	return pods.Addr().Is6() == six && (!six || pods.Addr().IsPrivate())
}

func hidesAny(pods []netip.Prefix, six bool) bool {
	return slices.ContainsFunc(pods, func(p netip.Prefix) bool { return hidden(p, six) })
}
