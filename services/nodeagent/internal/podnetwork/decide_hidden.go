package podnetwork

import (
	"net/netip"
	"slices"
)

// hidden says whether what a range of Pods of a family sends out of the cluster leaves under the machine's address: of
// IPv6 only what no network beyond knows the way back to, fc00::/7. Pods with global addresses keep theirs.
func hidden(pods netip.Prefix, six bool) bool {
	return pods.Addr().Is6() == six && (!six || pods.Addr().IsPrivate())
}

func hidesAny(pods []netip.Prefix, six bool) bool {
	return slices.ContainsFunc(pods, func(p netip.Prefix) bool { return hidden(p, six) })
}
