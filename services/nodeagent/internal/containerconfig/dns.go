package containerconfig

import (
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// The limits of a resolver.
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

// ReasonDNS is the reason of the Warning event about a name resolution that was cut.
const ReasonDNS = "DNSConfigForming"

// DNS computes the name resolution of a Pod. A Pod that uses the cluster's DNS gets the host's resolution if the
// cluster has none. The warning, if any, is the text of an event with reason ReasonDNS: the configuration had more
// entries than a resolver accepts.
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

// nobody is the server of Pods without servers. Runtimes replace an empty configuration by the host's.
const nobody = "127.0.0.1"

// serversOfPods returns the host's servers that a Pod with a network of its own can reach. If the host uses a
// server on its loopback interface, as with systemd-resolved, a Pod would ask itself: it gets that server's
// upstream servers instead.
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

// clusterResolver asks the cluster's servers, and resolves short names in the Pod's namespace first, then in the
// cluster, then as on the host.
func clusterResolver(namespace string, node Node) Resolver {
	r := Resolver{Servers: slices.Clone(node.ClusterDNS), Options: []string{"ndots:5"}}
	if node.ClusterDomain != "" {
		r.Searches = []string{namespace + ".svc." + node.ClusterDomain, "svc." + node.ClusterDomain, node.ClusterDomain}
	}
	r.Searches = unique(append(r.Searches, node.Resolver.Searches...))
	return r
}

// add appends the Pod's own entries; an option replaces one of the same name.
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

// cut drops what a resolver would not accept and returns a warning.
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
