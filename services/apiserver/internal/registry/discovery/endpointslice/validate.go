package endpointslice

import (
	"net/netip"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/fieldcheck"
)

// The API's bounds of a slice.
const (
	maxEndpoints = 1000
	maxAddresses = 100
	maxPorts     = 100
	maxHints     = 8
)

var (
	typePath      = field.NewPath("addressType")
	endpointsPath = field.NewPath("endpoints")
	portsPath     = field.NewPath("ports")
)

// Validate returns what is wrong with a defaulted slice.
func Validate(s *discoveryv1.EndpointSlice) field.ErrorList {
	errs := fieldcheck.RequiredOneOf(s.AddressType, typePath,
		discoveryv1.AddressTypeFQDN, discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6)
	if len(s.Endpoints) > maxEndpoints {
		return append(errs, field.TooMany(endpointsPath, len(s.Endpoints), maxEndpoints))
	}
	for i := range s.Endpoints {
		errs = append(errs, validateEndpoint(&s.Endpoints[i], s.AddressType, endpointsPath.Index(i))...)
	}
	return append(errs, validatePorts(s.Ports)...)
}

// ValidateUpdate returns what is wrong with s as the successor of old: its addresses stay of one family.
func ValidateUpdate(s, old *discoveryv1.EndpointSlice) field.ErrorList {
	return append(Validate(s), fieldcheck.Immutable(s.AddressType, old.AddressType, typePath)...)
}

func validateEndpoint(endpoint *discoveryv1.Endpoint, family discoveryv1.AddressType,
	path *field.Path) field.ErrorList {
	var errs field.ErrorList
	at := path.Child("addresses")
	switch n := len(endpoint.Addresses); {
	case n == 0:
		errs = append(errs, field.Required(at, "must contain at least 1 address"))
	case n > maxAddresses:
		errs = append(errs, field.TooMany(at, n, maxAddresses))
	}
	for i, address := range endpoint.Addresses {
		errs = append(errs, validateAddress(address, family, at.Index(i))...)
	}
	if name := endpoint.NodeName; name != nil {
		errs = append(errs, fieldcheck.Messages(*name, path.Child("nodeName"), fieldcheck.DNSSubdomain(*name))...)
	}
	if name := endpoint.Hostname; name != nil {
		errs = append(errs, fieldcheck.Messages(*name, path.Child("hostname"), validation.IsDNS1123Label(*name))...)
	}
	if endpoint.Hints != nil {
		errs = append(errs, validateHints(endpoint.Hints, path.Child("hints"))...)
	}
	return errs
}

func validateAddress(address string, family discoveryv1.AddressType, path *field.Path) field.ErrorList {
	if family == discoveryv1.AddressTypeFQDN {
		return validation.IsFullyQualifiedDomainName(path, address)
	}
	errs := fieldcheck.RoutableIP(address, path)
	ip, err := netip.ParseAddr(address)
	switch {
	case err != nil:
	case family == discoveryv1.AddressTypeIPv4 && !ip.Is4():
		errs = append(errs, field.Invalid(path, address, "must be an IPv4 address"))
	case family == discoveryv1.AddressTypeIPv6 && !ip.Is6():
		errs = append(errs, field.Invalid(path, address, "must be an IPv6 address"))
	}
	return errs
}

func validateHints(hints *discoveryv1.EndpointHints, path *field.Path) field.ErrorList {
	zones, nodes := make([]string, 0, maxHints), make([]string, 0, maxHints)
	for _, zone := range hints.ForZones {
		zones = append(zones, zone.Name)
	}
	for _, node := range hints.ForNodes {
		nodes = append(nodes, node.Name)
	}
	errs := validateNames(zones, path.Child("forZones"), validation.IsValidLabelValue)
	return append(errs, validateNames(nodes, path.Child("forNodes"), fieldcheck.DNSSubdomain)...)
}

func validateNames(names []string, path *field.Path, check func(string) []string) field.ErrorList {
	if len(names) > maxHints {
		return field.ErrorList{field.TooMany(path, len(names), maxHints)}
	}
	var errs field.ErrorList
	seen := sets.New[string]()
	for i, name := range names {
		at := path.Index(i).Child("name")
		if seen.Has(name) {
			errs = append(errs, field.Duplicate(at, name))
		}
		seen.Insert(name)
		errs = append(errs, fieldcheck.Required(name, at, check)...)
	}
	return errs
}

func validatePorts(ports []discoveryv1.EndpointPort) field.ErrorList {
	if len(ports) > maxPorts {
		return field.ErrorList{field.TooMany(portsPath, len(ports), maxPorts)}
	}
	var errs field.ErrorList
	names := sets.New[string]()
	for i := range ports {
		port, at := &ports[i], portsPath.Index(i)
		name := ptr.Deref(port.Name, "")
		if names.Has(name) {
			errs = append(errs, field.Duplicate(at.Child("name"), name))
		}
		names.Insert(name)
		errs = append(errs, fieldcheck.Optional(name, at.Child("name"), validation.IsDNS1123Label)...)
		errs = append(errs, fieldcheck.Protocol(ptr.Deref(port.Protocol, ""), at.Child("protocol"))...)
		if number := port.Port; number != nil {
			errs = append(errs, fieldcheck.Messages(*number, at.Child("port"),
				validation.IsValidPortNum(int(*number)))...)
		}
		if protocol := port.AppProtocol; protocol != nil {
			errs = append(errs, fieldcheck.Messages(*protocol, at.Child("appProtocol"),
				validation.IsQualifiedName(*protocol))...)
		}
	}
	return errs
}
