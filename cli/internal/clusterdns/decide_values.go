package clusterdns

import (
	"net/netip"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// image is CoreDNS as make images packs it; its tag is the version that tools/pins/coredns pins.
const (
	repository = "keelson.dev/coredns"
	tag        = "v1.14.6"
)

// resolvConf is the file in CoreDNS's container that names the node's DNS servers.
const resolvConf = "/etc/resolv.conf"

// Input is what cluster DNS depends on.
type Input struct {
	// Address is the Service's, Domain that of the cluster's names.
	Address netip.Addr
	Domain  string
	Nodes   int
	// Resolver is the text of the machine's resolv.conf, Upstream that of the list which systemd-resolved keeps.
	Resolver, Upstream string
}

// values are the sub-chart's, in its own names.
func values(in Input) map[string]any {
	replicas, upstream := 1, ""
	if in.Nodes > 1 {
		replicas = 2
	}
	if in.Forwards() {
		upstream = resolvConf
	}
	return map[string]any{
		"global":   map[string]any{"namespace": metav1.NamespaceSystem},
		"image":    map[string]any{"repository": repository, "tag": tag, "pullPolicy": "IfNotPresent"},
		"replicas": replicas, "clusterIP": in.Address.String(), "domain": in.Domain, "upstream": upstream,
		"corefile": "",
	}
}

// Forwards reports whether this machine names a server that Pods can reach, to which CoreDNS can forward queries
// for other names. A server on the machine's loopback would be CoreDNS itself: nodeagents do not pass it on to
// Pods.
func (in Input) Forwards() bool {
	for line := range strings.Lines(in.Resolver + "\n" + in.Upstream) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != "nameserver" {
			continue
		}
		if address, err := netip.ParseAddr(fields[1]); err == nil && !address.IsLoopback() {
			return true
		}
	}
	return false
}
