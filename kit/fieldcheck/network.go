package fieldcheck

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Protocol wants one of the transport protocols that Services and Pods know.
func Protocol(protocol corev1.Protocol, path *field.Path) field.ErrorList {
	return RequiredOneOf(protocol, path, corev1.ProtocolSCTP, corev1.ProtocolTCP, corev1.ProtocolUDP)
}

// RoutableIP wants an address that packets can be sent to from elsewhere.
func RoutableIP(ip string, path *field.Path) field.ErrorList {
	if errs := validation.IsValidIP(path, ip); len(errs) > 0 {
		return errs
	}
	address, err := netip.ParseAddr(ip)
	if err != nil {
		return field.ErrorList{field.Invalid(path, ip, "must be a valid IP address")}
	}
	var errs field.ErrorList
	for _, special := range []struct {
		is     bool
		detail string
	}{
		{address.IsUnspecified(), "may not be unspecified (0.0.0.0 or ::)"},
		{address.IsLoopback(), "may not be in the loopback range (127.0.0.0/8, ::1/128)"},
		{address.IsLinkLocalUnicast(), "may not be in the link-local range (169.254.0.0/16, fe80::/10)"},
		{address.IsLinkLocalMulticast(), "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"},
	} {
		if special.is {
			errs = append(errs, field.Invalid(path, ip, special.detail))
		}
	}
	return errs
}

// CIDR wants a range in the one way in which it is written: without bits behind its length.
func CIDR(text string, path *field.Path) (netip.Prefix, field.ErrorList) {
	if errs := validation.IsValidCIDR(path, text); len(errs) > 0 {
		return netip.Prefix{}, errs
	}
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		return netip.Prefix{}, field.ErrorList{field.Invalid(path, text, "must be a valid CIDR value")}
	}
	return prefix, nil
}
