package server

import (
	"fmt"
	"net/netip"
	"strings"
)

// minServiceBits is how many bits of an address a range must leave to the Services.
const minServiceBits = 3

// serviceRanges reads what --service-cluster-ip-range says: one range, or one of each family.
func serviceRanges(text string) ([]netip.Prefix, error) {
	const flag = "--service-cluster-ip-range: "
	var ranges []netip.Prefix
	for _, part := range strings.Split(text, ",") {
		prefix, err := netip.ParsePrefix(strings.TrimSpace(part))
		if err != nil {
			return nil, fmt.Errorf(flag+"%q is not a CIDR such as 10.96.0.0/16", part)
		}
		if prefix.Addr().BitLen()-prefix.Bits() < minServiceBits {
			return nil, fmt.Errorf(flag+"%s is too small: it must have at least %d addresses", prefix,
				1<<minServiceBits)
		}
		ranges = append(ranges, prefix.Masked())
	}
	if len(ranges) > 2 || len(ranges) == 2 && ranges[0].Addr().Is4() == ranges[1].Addr().Is4() {
		return nil, fmt.Errorf(flag+"%q must be one range, or one of IPv4 and one of IPv6", text)
	}
	return ranges, nil
}
