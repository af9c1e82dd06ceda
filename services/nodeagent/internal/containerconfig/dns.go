package containerconfig

import (
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// What a resolver takes at most.
const (
	maxServers       = 3
	maxSearches      = 32
	maxSearchesChars = 2048
)

// Resolver is a configuration of name resolution: the contents of a resolv.conf.
type Resolver struct {
	Servers, Searches, Options []string
}

// ParseResolver reads a resolv.conf(5). Lines that it does not know are ignored, as resolvers do.
func ParseResolver(text string) Resolver {
	var r Resolver
	for _, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		switch fields[0] {
		case "nameserver":
			r.Servers = append(r.Servers, fields[1])
		case "search":
			r.Searches = fields[1:]
		case "options":
			r.Options = fields[1:]
		}
	}
	return r
}

// ReasonDNS is the reason of the Warning event about name resolution that had to be cut short.
const ReasonDNS = "DNSConfigForming"

// DNS computes the name resolution of a Pod. One that asks for the cluster's DNS where there is none gets the host's.
// The warning, if any, is the text of an event with reason ReasonDNS: there were more entries than a resolver takes.
func DNS(pod *corev1.Pod, node Node) (config *cri.DNSConfig, warning string) {
	r := Resolver{}
	switch policy := effectivePolicy(pod); {
	case policy == corev1.DNSDefault, policy == corev1.DNSClusterFirst && len(node.ClusterDNS) == 0:
		r = node.Resolver.clone()
		if !pod.Spec.HostNetwork {
			r.Servers = serversOfPods(node)
		}
	case policy == corev1.DNSClusterFirst:
		r = clusterResolver(pod.Namespace, node)
	}
	if pod.Spec.DNSConfig != nil {
		r.add(pod.Spec.DNSConfig)
	}
	if len(r.Servers) == 0 {
		r.Servers = []string{nobody}
	}
	warning = r.cut()
	return &cri.DNSConfig{Servers: r.Servers, Searches: r.Searches, Options: r.Options}, warning
}

// nobody is where resolvers ask that know no server. Of a configuration that is empty runtimes make the host's.
const nobody = "127.0.0.1"

// serversOfPods are those of the host's servers that a Pod with a network of its own reaches. Where the host asks a
// server on its loopback, as with systemd-resolved, a Pod would ask itself: it asks whom that server asks.
func serversOfPods(node Node) []string {
	if reachable := beyondLoopback(node.Resolver.Servers); len(reachable) > 0 {
		return reachable
	}
	return beyondLoopback(node.Upstream.Servers)
}

func beyondLoopback(servers []string) []string {
	return slices.DeleteFunc(slices.Clone(servers), func(server string) bool {
		address, err := netip.ParseAddr(server)
		return err == nil && address.IsLoopback()
	})
}

// effectivePolicy reduces the five policies to three: Default, ClusterFirst and None.
func effectivePolicy(pod *corev1.Pod) corev1.DNSPolicy {
	switch pod.Spec.DNSPolicy {
	case corev1.DNSNone, corev1.DNSDefault:
		return pod.Spec.DNSPolicy
	case corev1.DNSClusterFirstWithHostNet:
		return corev1.DNSClusterFirst
	}
	if pod.Spec.HostNetwork {
		return corev1.DNSDefault
	}
	return corev1.DNSClusterFirst
}

// clusterResolver asks the cluster's servers and lets short names mean the Pod's namespace first, then the cluster,
// then what they mean on the host.
func clusterResolver(namespace string, node Node) Resolver {
	r := Resolver{Servers: slices.Clone(node.ClusterDNS), Options: []string{"ndots:5"}}
	if node.ClusterDomain != "" {
		r.Searches = []string{namespace + ".svc." + node.ClusterDomain, "svc." + node.ClusterDomain, node.ClusterDomain}
	}
	r.Searches = unique(append(r.Searches, node.Resolver.Searches...))
	return r
}

// add puts the Pod's own entries behind the others; an option replaces one of the same name.
func (r *Resolver) add(config *corev1.PodDNSConfig) {
	r.Servers = unique(append(r.Servers, config.Nameservers...))
	r.Searches = unique(append(r.Searches, config.Searches...))
	for _, option := range config.Options {
		text := option.Name
		if option.Value != nil {
			text += ":" + *option.Value
		}
		r.Options = slices.DeleteFunc(r.Options, func(old string) bool {
			name, _, _ := strings.Cut(old, ":")
			return name == option.Name
		})
		r.Options = append(r.Options, text)
	}
}

// cut drops what a resolver would not take and says so.
func (r *Resolver) cut() string {
	var warnings []string
	if len(r.Servers) > maxServers {
		r.Servers = r.Servers[:maxServers]
		warnings = append(warnings,
			"Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: "+
				strings.Join(r.Servers, " "))
	}
	kept := r.Searches
	if len(kept) > maxSearches {
		kept = kept[:maxSearches]
	}
	for len(strings.Join(kept, " ")) > maxSearchesChars {
		kept = kept[:len(kept)-1]
	}
	if len(kept) < len(r.Searches) {
		r.Searches = kept
		warnings = append(warnings,
			"Search Line limits were exceeded, some search paths have been omitted, the applied search line is: "+
				strings.Join(kept, " "))
	}
	return strings.Join(warnings, "; ")
}

func (r Resolver) clone() Resolver {
	return Resolver{slices.Clone(r.Servers), slices.Clone(r.Searches), slices.Clone(r.Options)}
}

// unique keeps the first of equal entries.
func unique(values []string) []string {
	var out []string
	for _, value := range values {
		if !slices.Contains(out, value) {
			out = append(out, value)
		}
	}
	return out
}
