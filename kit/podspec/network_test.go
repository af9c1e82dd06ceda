package podspec

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

func TestValidateNetwork(t *testing.T) {
	dns := func(policy corev1.DNSPolicy, config *corev1.PodDNSConfig) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) { s.DNSPolicy, s.DNSConfig = policy, config }
	}
	var many []string
	for i := range 33 {
		many = append(many, fmt.Sprintf("s%d", i))
	}
	long := strings.Repeat("a.", 125) + "a"
	const notALabel = `a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`
	const notAnIP = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
	runAll(t, []row{
		{name: "hostname and subdomain", change: func(s *corev1.PodSpec) { s.Hostname, s.Subdomain = "a", "b" }},
		{name: "hostname with a dot", change: func(s *corev1.PodSpec) { s.Hostname, s.Subdomain = "a.b", "C" },
			want: []string{`spec.hostname: Invalid value: "a.b": must not contain dots`,
				`spec.subdomain: Invalid value: "C": ` + notALabel}},
		{name: "another hostname", change: func(s *corev1.PodSpec) { s.HostnameOverride = ptr.To("a.b") }},
		{name: "another hostname in the host's network", change: func(s *corev1.PodSpec) {
			s.HostnameOverride, s.HostNetwork, s.SetHostnameAsFQDN = ptr.To("a"), true, ptr.To(true)
		}, want: []string{`spec.hostnameOverride: Invalid value: "a": may not be specified when hostNetwork is true`,
			`spec.hostnameOverride: Invalid value: "a": may not be specified when setHostnameAsFQDN is true`}},
		{name: "another hostname too long",
			change: func(s *corev1.PodSpec) { s.HostnameOverride = ptr.To(strings.Repeat("a", 65)) },
			want:   []string{`spec.hostnameOverride: Too long: may not be more than 64 bytes`}},
		{name: "unknown DNS policy", change: dns("x", nil),
			want: []string{
				`spec.dnsPolicy: Unsupported value: "x": supported values: "ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"`,
			}},
		{name: "no DNS and nothing instead", change: dns("None", nil),
			want: []string{"spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None"}},
		{name: "no DNS and no server", change: dns("None", &corev1.PodDNSConfig{}),
			want: []string{"spec.dnsConfig.nameservers: Required value: must provide at least one DNS nameserver " +
				"when `dnsPolicy` is None"}},
		{name: "own DNS", change: dns("None", &corev1.PodDNSConfig{Nameservers: []string{"1.1.1.1"},
			Searches: []string{".", "a.b.", "_tcp.a"},
			Options:  []corev1.PodDNSConfigOption{{Name: "ndots", Value: ptr.To("2")}}})},
		{name: "own DNS wrong in every way",
			change: dns("Default", &corev1.PodDNSConfig{Nameservers: []string{"1.1.1.1", "2.2.2.2", "3.3.3.3", "x"},
				Searches: []string{"A"},
				Options:  []corev1.PodDNSConfigOption{{}}}), want: []string{
				`spec.dnsConfig.nameservers: Invalid value: ["1.1.1.1","2.2.2.2","3.3.3.3","x"]: must not have more than 3 nameservers`,
				`spec.dnsConfig.nameservers[3]: Invalid value: "x": ` + notAnIP,
				`spec.dnsConfig.options[0]: Required value: must not be empty`,
				`spec.dnsConfig.searches[0]: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')`,
			}},
		{name: "too many search paths", change: dns("Default", &corev1.PodDNSConfig{Searches: many}),
			want: []string{`spec.dnsConfig.searches: Invalid value: ["` + strings.Join(many, `","`) +
				`"]: must not have more than 32 search paths`}},
		{name: "too long search paths", change: dns("Default", &corev1.PodDNSConfig{Searches: []string{long, long, long,
			long, long, long, long, long, long}}),
			want: []string{`spec.dnsConfig.searches: Invalid value: ["` + strings.Repeat(long+`","`, 8) + long +
				`"]: must not have more than 2048 characters (including spaces) in the search list`}},
		{name: "aliases", change: func(s *corev1.PodSpec) {
			s.HostAliases = []corev1.HostAlias{{IP: "127.0.0.1", Hostnames: []string{"a.b"}},
				{IP: "x", Hostnames: []string{"A"}}}
		}, want: []string{`spec.hostAliases[1].hostnames[0]: Invalid value: "A": ` + notASub,
			`spec.hostAliases[1].ip: Invalid value: "x": ` + notAnIP}},
	})
}
