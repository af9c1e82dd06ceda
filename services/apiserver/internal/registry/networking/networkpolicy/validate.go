package networkpolicy

import (
	"net/netip"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/fieldcheck"
)

var specPath = field.NewPath("spec")

// Validate returns what is wrong with a defaulted policy.
func Validate(p *networkingv1.NetworkPolicy) field.ErrorList {
	spec := &p.Spec
	errs := fieldcheck.LabelSelector(&spec.PodSelector, specPath.Child("podSelector"))
	for i := range spec.Ingress {
		path := specPath.Child("ingress").Index(i)
		errs = append(errs, validatePorts(spec.Ingress[i].Ports, path.Child("ports"))...)
		errs = append(errs, validatePeers(spec.Ingress[i].From, path.Child("from"))...)
	}
	for i := range spec.Egress {
		path := specPath.Child("egress").Index(i)
		errs = append(errs, validatePorts(spec.Egress[i].Ports, path.Child("ports"))...)
		errs = append(errs, validatePeers(spec.Egress[i].To, path.Child("to"))...)
	}
	types := specPath.Child("policyTypes")
	if len(spec.PolicyTypes) > 2 {
		return append(errs, field.Invalid(types, spec.PolicyTypes, "may not specify more than two policyTypes"))
	}
	for i, policyType := range spec.PolicyTypes {
		errs = append(errs, fieldcheck.OneOf(policyType, types.Index(i), networkingv1.PolicyTypeEgress,
			networkingv1.PolicyTypeIngress)...)
	}
	return errs
}

func validatePorts(ports []networkingv1.NetworkPolicyPort, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range ports {
		port, at := &ports[i], path.Index(i)
		errs = append(errs, fieldcheck.Protocol(ptr.Deref(port.Protocol, ""), at.Child("protocol"))...)
		errs = append(errs, validatePort(port.Port, at.Child("port"))...)
		errs = append(errs, validateEnd(port, at.Child("endPort"))...)
	}
	return errs
}

func validatePort(port *intstr.IntOrString, path *field.Path) field.ErrorList {
	switch {
	case port == nil:
		return nil
	case port.Type == intstr.Int:
		return fieldcheck.Messages(port.IntVal, path, validation.IsValidPortNum(int(port.IntVal)))
	}
	return fieldcheck.Messages(port.StrVal, path, validation.IsValidPortName(port.StrVal))
}

func validateEnd(port *networkingv1.NetworkPolicyPort, path *field.Path) field.ErrorList {
	if port.EndPort == nil {
		return nil
	}
	end := *port.EndPort
	switch {
	case port.Port == nil:
		return field.ErrorList{field.Invalid(path, end, "may not be specified when `port` is not specified")}
	case port.Port.Type == intstr.String:
		return field.ErrorList{field.Invalid(path, end, "may not be specified when `port` is non-numeric")}
	case end < port.Port.IntVal:
		return field.ErrorList{field.Invalid(path, end, "must be greater than or equal to `port`")}
	}
	return fieldcheck.Messages(end, path, validation.IsValidPortNum(int(end)))
}

func validatePeers(peers []networkingv1.NetworkPolicyPeer, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range peers {
		errs = append(errs, validatePeer(&peers[i], path.Index(i))...)
	}
	return errs
}

func validatePeer(peer *networkingv1.NetworkPolicyPeer, path *field.Path) field.ErrorList {
	selects := peer.PodSelector != nil || peer.NamespaceSelector != nil
	errs := fieldcheck.LabelSelector(peer.PodSelector, path.Child("podSelector"))
	errs = append(errs, fieldcheck.LabelSelector(peer.NamespaceSelector, path.Child("namespaceSelector"))...)
	switch {
	case peer.IPBlock != nil && selects:
		return append(errs, field.Forbidden(path, "may not specify both ipBlock and another peer"))
	case peer.IPBlock != nil:
		return append(errs, validateBlock(peer.IPBlock, path.Child("ipBlock"))...)
	case !selects:
		return append(errs, field.Required(path, "must specify a peer"))
	}
	return errs
}

func validateBlock(block *networkingv1.IPBlock, path *field.Path) field.ErrorList {
	at := path.Child("cidr")
	if block.CIDR == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	cidr, errs := parseRange(block.CIDR, at)
	if len(errs) > 0 {
		return errs
	}
	for i, text := range block.Except {
		at := path.Child("except").Index(i)
		except, malformed := parseRange(text, at)
		errs = append(errs, malformed...)
		if len(malformed) == 0 && !within(except, cidr) {
			errs = append(errs, field.Invalid(at, text, "must be a strict subset of `cidr`"))
		}
	}
	return errs
}

// parseRange takes an address of IPv6 in whatever way it is written, as the field always has.
func parseRange(text string, path *field.Path) (netip.Prefix, field.ErrorList) {
	if errs := validation.IsValidCIDRForLegacyField(path, text, true, nil); len(errs) > 0 {
		return netip.Prefix{}, errs
	}
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		return netip.Prefix{}, field.ErrorList{field.Invalid(path, text, "must be a valid CIDR value")}
	}
	return prefix, nil
}

// within reports whether inner is a proper subset of outer.
func within(inner, outer netip.Prefix) bool {
	return outer.Bits() < inner.Bits() && outer.Contains(inner.Addr())
}
