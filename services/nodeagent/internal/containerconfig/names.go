package containerconfig

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

const (
	maxLabel    = 63
	maxHostname = 64 // the kernel's limit
)

// Hostname returns the name that the Pod's containers see as their host, and the domain of the Pod's full name,
// which is empty for a Pod without subdomain. Do not call it for a Pod on the host's network, which has the host's
// name.
func Hostname(pod *corev1.Pod, clusterDomain string) (hostname, domain string) {
	if override := ptr.Deref(pod.Spec.HostnameOverride, ""); override != "" {
		return override, ""
	}
	hostname = pod.Spec.Hostname
	if hostname == "" {
		hostname = shorten(pod.Name)
	}
	if pod.Spec.Subdomain != "" {
		domain = fmt.Sprintf("%s.%s.svc.%s", pod.Spec.Subdomain, pod.Namespace, clusterDomain)
	}
	return hostname, domain
}

// kernelHostname returns the host name inside the Pod: the short one, or the full one if the Pod requests it and
// has one.
func kernelHostname(pod *corev1.Pod, clusterDomain string) (string, error) {
	hostname, domain := Hostname(pod, clusterDomain)
	if domain == "" || !ptr.Deref(pod.Spec.SetHostnameAsFQDN, false) {
		return hostname, nil
	}
	full := hostname + "." + domain
	if len(full) > maxHostname {
		return "",
			fmt.Errorf("failed to construct FQDN from pod hostname and cluster domain, FQDN %s is too long (%d "+
				"characters is the max, %d characters requested)",
				full, maxHostname, len(full))
	}
	return full, nil
}

// shorten cuts a Pod's name to the length of one label of a host name.
func shorten(name string) string {
	if len(name) <= maxLabel {
		return name
	}
	return strings.TrimRight(name[:maxLabel], "-.")
}

// The first line of /etc/hosts, the same as the kubelet's: programs look for it before they change the file.
const (
	hostsOfPod  = "# Kubernetes-managed hosts file.\n"
	hostsOfNode = "# Kubernetes-managed hosts file (host network).\n"
)

// HostsFile returns the contents of the Pod's /etc/hosts. host is the node's own file, which Pods on the host's
// network get; ips are the Pod's addresses.
func HostsFile(pod *corev1.Pod, ips []string, clusterDomain string, host []byte) []byte {
	var out strings.Builder
	if pod.Spec.HostNetwork {
		out.WriteString(hostsOfNode)
		out.Write(host)
	} else {
		hostname, domain := Hostname(pod, clusterDomain)
		out.WriteString(hostsOfPod + "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n" +
			"fe00::0\tip6-localnet\nfe00::0\tip6-mcastprefix\nfe00::1\tip6-allnodes\nfe00::2\tip6-allrouters\n")
		for _, ip := range ips {
			out.WriteString(ip + "\t")
			if domain != "" {
				out.WriteString(hostname + "." + domain + "\t")
			}
			out.WriteString(hostname + "\n")
		}
	}
	if len(pod.Spec.HostAliases) > 0 {
		out.WriteString("\n# Entries added by HostAliases.\n")
	}
	for _, alias := range pod.Spec.HostAliases {
		out.WriteString(alias.IP + "\t" + strings.Join(alias.Hostnames, "\t") + "\n")
	}
	return []byte(out.String())
}
