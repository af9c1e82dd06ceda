package nodecertificates

import (
	"crypto/x509"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// servingRequest returns a node's request for a certificate to serve its API at the addresses; nil before it has an
// IP address. It leaves out names that are invalid in DNS, so that the others get a certificate.
func servingRequest(node string, addresses []corev1.NodeAddress) *x509.CertificateRequest {
	var names []string
	var ips []netip.Addr
	for _, a := range addresses {
		// A host name may be an address: clients then look for it among the addresses.
		if ip, err := netip.ParseAddr(a.Address); err == nil {
			ips = append(ips, ip.Unmap().WithZone(""))
			continue
		}
		switch a.Type {
		case corev1.NodeHostName, corev1.NodeInternalDNS, corev1.NodeExternalDNS:
			if len(validation.IsDNS1123Subdomain(a.Address)) == 0 {
				names = append(names, a.Address)
			}
		case corev1.NodeInternalIP, corev1.NodeExternalIP: // none
		}
	}
	if len(ips) == 0 {
		return nil
	}
	slices.Sort(names)
	slices.SortFunc(ips, netip.Addr.Compare)
	request := clientRequest(node)
	request.DNSNames = slices.Compact(names)
	for _, ip := range slices.Compact(ips) {
		request.IPAddresses = append(request.IPAddresses, ip.AsSlice())
	}
	return request
}
