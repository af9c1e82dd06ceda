package podspec

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/fieldcheck"
)

// What resolvers commonly read of their configuration, and so all that a Pod may put there.
const (
	maxNameservers       = 3
	maxSearchPaths       = 32
	maxSearchListChars   = 2048
	maxHostnameOverride  = 64
	noNameserverSentence = "must provide at least one DNS nameserver when `dnsPolicy` is None"
)

// validateNetwork checks how the Pod is named and how it finds others.
func validateNetwork(spec *corev1.PodSpec, fldPath *field.Path, opts Options) field.ErrorList {
	errs := validateHostname(spec, fldPath)
	if spec.HostNetwork {
		errs = append(errs, hostNetworkPorts(spec.Containers, fldPath.Child("containers"), opts)...)
		errs = append(errs, hostNetworkPorts(spec.InitContainers, fldPath.Child("initContainers"), opts)...)
	}
	errs = append(errs, fieldcheck.RequiredOneOf(spec.DNSPolicy, fldPath.Child("dnsPolicy"),
		corev1.DNSClusterFirstWithHostNet, corev1.DNSClusterFirst, corev1.DNSDefault, corev1.DNSNone)...)
	errs = append(errs, validateDNSConfig(spec, fldPath.Child("dnsConfig"))...)
	for i, alias := range spec.HostAliases {
		at := fldPath.Child("hostAliases").Index(i)
		errs = append(errs, validation.IsValidIPForLegacyField(at.Child("ip"), alias.IP, false, nil)...)
		for j, hostname := range alias.Hostnames {
			errs = append(errs, fieldcheck.Messages(hostname, at.Child("hostnames").Index(j),
				validation.IsDNS1123Subdomain(hostname))...)
		}
	}
	return errs
}

func validateHostname(spec *corev1.PodSpec, fldPath *field.Path) field.ErrorList {
	errs := fieldcheck.Optional(spec.Hostname, fldPath.Child("hostname"), validation.IsDNS1123Label)
	errs = append(errs, fieldcheck.Optional(spec.Subdomain, fldPath.Child("subdomain"), validation.IsDNS1123Label)...)
	if spec.HostnameOverride == nil {
		return errs
	}
	name, at := *spec.HostnameOverride, fldPath.Child("hostnameOverride")
	errs = append(errs, fieldcheck.Optional(name, at, validation.IsDNS1123Subdomain)...)
	if len(name) > maxHostnameOverride {
		errs = append(errs, field.TooLong(at, name, maxHostnameOverride))
	}
	if spec.HostNetwork {
		errs = append(errs, field.Invalid(at, name, "may not be specified when hostNetwork is true"))
	}
	if spec.SetHostnameAsFQDN != nil && *spec.SetHostnameAsFQDN {
		errs = append(errs, field.Invalid(at, name, "may not be specified when setHostnameAsFQDN is true"))
	}
	return errs
}

func validateDNSConfig(spec *corev1.PodSpec, fldPath *field.Path) field.ErrorList {
	config := spec.DNSConfig
	if spec.DNSPolicy == corev1.DNSNone {
		if config == nil {
			return field.ErrorList{field.Required(fldPath, "must provide `dnsConfig` when `dnsPolicy` is None")}
		}
		if len(config.Nameservers) == 0 {
			return field.ErrorList{field.Required(fldPath.Child("nameservers"), noNameserverSentence)}
		}
	}
	if config == nil {
		return nil
	}
	errs := validateNameservers(config.Nameservers, fldPath.Child("nameservers"))
	errs = append(errs, validateSearches(config.Searches, fldPath.Child("searches"))...)
	for i, option := range config.Options {
		if option.Name == "" {
			errs = append(errs, field.Required(fldPath.Child("options").Index(i), "must not be empty"))
		}
	}
	return errs
}

func validateNameservers(servers []string, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(servers) > maxNameservers {
		errs = append(errs, field.Invalid(fldPath, servers, fmt.Sprintf("must not have more than %d nameservers",
			maxNameservers)))
	}
	for i, server := range servers {
		errs = append(errs, validation.IsValidIPForLegacyField(fldPath.Index(i), server, false, nil)...)
	}
	return errs
}

func validateSearches(searches []string, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(searches) > maxSearchPaths {
		errs = append(errs, field.Invalid(fldPath, searches, fmt.Sprintf("must not have more than %d search paths",
			maxSearchPaths)))
	}
	if len(strings.Join(searches, " ")) > maxSearchListChars {
		errs = append(errs, field.Invalid(fldPath, searches,
			fmt.Sprintf("must not have more than %d characters (including spaces) in the search list",
				maxSearchListChars)))
	}
	for i, search := range searches {
		if search == "." {
			continue
		}
		name := strings.TrimSuffix(search, ".")
		errs = append(errs, fieldcheck.Messages(search, fldPath.Index(i),
			validation.IsDNS1123SubdomainWithUnderscore(name))...)
	}
	return errs
}
