package denyexternalips

import (
	"errors"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
)

// errDenied is the field's sentence, its capital included: tools look for it.
//
//nolint:staticcheck // see above
var errDenied = errors.New("Use of external IPs is denied by admission control")

// decide refuses external IPs that a Service has not had before; old is nil for a new Service. One that has some may
// keep them, give them up, and change in all else.
func decide(updated, old *corev1.Service) error {
	had := map[string]bool{}
	if old != nil {
		for _, ip := range old.Spec.ExternalIPs {
			had[form(ip)] = true
		}
	}
	for _, ip := range updated.Spec.ExternalIPs {
		if !had[form(ip)] {
			return errDenied
		}
	}
	return nil
}

// form is one for each address, however it is written.
func form(text string) string {
	if ip, err := netip.ParseAddr(text); err == nil {
		return ip.Unmap().String()
	}
	return text
}
