package containerconfig

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

func TestDNS(t *testing.T) {
	host := ParseResolver(
		"# made by hand\nnameserver 192.0.2.53\nsearch corp.example # here\noptions timeout:1\nsortlist x\n")
	with := Node{ClusterDNS: []string{"10.96.0.10"}, ClusterDomain: "kube.local", Resolver: host}
	without := Node{ClusterDomain: "kube.local", Resolver: host}
	clusterSearches := []string{"foo.svc.kube.local", "svc.kube.local", "kube.local", "corp.example"}
	for _, row := range []struct {
		name   string
		node   Node
		change func(*corev1.PodSpec)
		want   Resolver
		cut    bool
	}{
		{name: "cluster first", node: with, want: Resolver{[]string{"10.96.0.10"}, clusterSearches,
			[]string{"ndots:5"}}},
		{name: "no cluster DNS", node: without, want: host},
		{name: "default", node: with, change: func(s *corev1.PodSpec) { s.DNSPolicy = corev1.DNSDefault }, want: host},
		{name: "host network", node: with, change: func(s *corev1.PodSpec) {
			s.HostNetwork, s.DNSPolicy = true,
				corev1.DNSClusterFirst
		}, want: host},
		{name: "host network, cluster", node: with, change: func(s *corev1.PodSpec) {
			s.HostNetwork, s.DNSPolicy = true,
				corev1.DNSClusterFirstWithHostNet
		},
			want: Resolver{[]string{"10.96.0.10"}, clusterSearches, []string{"ndots:5"}}},
		{name: "none", node: with, change: func(s *corev1.PodSpec) {
			s.DNSPolicy = corev1.DNSNone
			s.DNSConfig = &corev1.PodDNSConfig{Nameservers: []string{"192.0.2.1"}, Searches: []string{"a.b"},
				Options: []corev1.PodDNSConfigOption{{Name: "debug"}}}
		}, want: Resolver{[]string{"192.0.2.1"}, []string{"a.b"}, []string{"debug"}}},
		{name: "merged", node: with, change: func(s *corev1.PodSpec) {
			s.DNSConfig = &corev1.PodDNSConfig{Nameservers: []string{"192.0.2.1", "10.96.0.10"},
				Options: []corev1.PodDNSConfigOption{{Name: "ndots", Value: ptr.To("2")}}}
		}, want: Resolver{[]string{"10.96.0.10", "192.0.2.1"}, clusterSearches, []string{"ndots:2"}}},
		{name: "a policy that nobody knows", node: with, change: func(s *corev1.PodSpec) { s.DNSPolicy = "Other" },
			want: Resolver{[]string{"10.96.0.10"}, clusterSearches, []string{"ndots:5"}}},
		{name: "default, with more", node: with, change: func(s *corev1.PodSpec) {
			s.DNSPolicy = corev1.DNSDefault
			s.DNSConfig = &corev1.PodDNSConfig{Nameservers: []string{"192.0.2.1"}, Searches: []string{"corp.example",
				"a.b"},
				Options: []corev1.PodDNSConfigOption{{Name: "timeout"}, {Name: "time", Value: ptr.To("1")}}}
		}, want: Resolver{[]string{"192.0.2.53", "192.0.2.1"}, []string{"corp.example", "a.b"},
			[]string{"timeout", "time:1"}}},
		{name: "no domain", node: Node{ClusterDNS: []string{"10.96.0.10"}, Resolver: host}, want: Resolver{
			[]string{"10.96.0.10"}, []string{"corp.example"}, []string{"ndots:5"}}},
		{name: "as many as may be", node: with, change: func(s *corev1.PodSpec) {
			s.DNSConfig = &corev1.PodDNSConfig{Nameservers: []string{"192.0.2.1", "192.0.2.2"}}
		}, want: Resolver{[]string{"10.96.0.10", "192.0.2.1", "192.0.2.2"}, clusterSearches, []string{"ndots:5"}}},
		{name: "too many", node: with, change: func(s *corev1.PodSpec) {
			s.DNSConfig = &corev1.PodDNSConfig{Nameservers: []string{"192.0.2.1", "192.0.2.2", "192.0.2.3"}}
		}, want: Resolver{[]string{"10.96.0.10", "192.0.2.1", "192.0.2.2"}, clusterSearches, []string{"ndots:5"}},
			cut: true},
	} {
		config, warning := DNS(named("web", row.change), row.node)
		got := Resolver{config.Servers, config.Searches, config.Options}
		if !reflect.DeepEqual(got, row.want) || row.cut != (warning != "") {
			t.Errorf("%s: got %v, %q; want %v", row.name, got, warning, row.want)
		}
	}
}

// A Pod with a network of its own never asks the host's loopback address, where it would find itself: a cluster's
// DNS that forwards queries to the host's servers would ask itself forever.
func TestPodsDoNotAskTheHostsLoopback(t *testing.T) {
	stub, real := []string{"127.0.0.53"}, []string{"192.0.2.53", "2001:db8::53"}
	hostNetwork := func(s *corev1.PodSpec) { s.HostNetwork = true }
	for _, row := range []struct {
		name           string
		host, upstream []string
		change         func(*corev1.PodSpec)
		want           []string
	}{
		{name: "what the stub asks", host: stub, upstream: real, want: real},
		{name: "the host's, if there is one", host: []string{"127.0.0.1", "192.0.2.1"}, upstream: real,
			want: []string{"192.0.2.1"}},
		{name: "IPv6", host: []string{"::1", "fe80::1%eth0"}, want: []string{"fe80::1%eth0"}},
		{name: "no other is known", host: stub, want: []string{"127.0.0.1"}},
		{name: "the stub of a stub", host: stub, upstream: []string{"127.0.0.2"}, want: []string{"127.0.0.1"}},
		// The runtime would replace an empty configuration by the host's.
		{name: "none", want: []string{"127.0.0.1"}},
		{name: "host network", host: stub, upstream: real, change: hostNetwork, want: stub},
	} {
		pod := named("dns", func(s *corev1.PodSpec) { s.DNSPolicy = corev1.DNSDefault })
		if row.change != nil {
			row.change(&pod.Spec)
		}
		host := Resolver{Servers: row.host, Searches: []string{"corp.example"}}
		config, _ := DNS(pod, Node{Resolver: host, Upstream: Resolver{Servers: row.upstream, Searches: []string{"x"}}})
		if !slices.Equal(config.Servers, row.want) || !slices.Equal(config.Searches, host.Searches) {
			t.Errorf("%s: asks %v in %v, want %v", row.name, config.Servers, config.Searches, row.want)
		}
	}
}

func TestParseResolver(t *testing.T) {
	got := ParseResolver("nameserver\nnameserver 192.0.2.1 192.0.2.9\nsearch a\nnameserver 192.0.2.2\nsearch b c\n" +
		"options x\noptions y z\n  options\n#nameserver 192.0.2.3\nother v")
	want := Resolver{[]string{"192.0.2.1", "192.0.2.2"}, []string{"b", "c"}, []string{"y", "z"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// A Pod's additions do not change the host's name resolution.
func TestTheHostsResolverStays(t *testing.T) {
	options := make([]string, 1, 4)
	options[0] = "timeout:1"
	node := Node{Resolver: Resolver{Servers: []string{"192.0.2.53"}, Options: options}}
	pod := named("web", func(s *corev1.PodSpec) {
		s.DNSPolicy, s.DNSConfig = corev1.DNSDefault, &corev1.PodDNSConfig{
			Options: []corev1.PodDNSConfigOption{{Name: "timeout", Value: ptr.To("9")}}}
	})
	if config, _ := DNS(pod, node); !reflect.DeepEqual(config.Options, []string{"timeout:9"}) {
		t.Errorf("options %v", config.Options)
	}
	if options[0] != "timeout:1" {
		t.Errorf("the host's options become %v", options)
	}
}

// A resolver accepts 3 servers, 32 search paths and 2048 characters of them.
func TestBoundsOfResolvers(t *testing.T) {
	paths := func(n, length int) (paths []string) {
		for i := range n {
			paths = append(paths, fmt.Sprintf("%0*d", length, i))
		}
		return paths
	}
	for name, row := range map[string]struct {
		searches []string
		kept     int
	}{
		"32": {paths(32, 2), 32}, "33": {paths(33, 2), 32},
		"2048 characters":           {append(paths(31, 65), "ab"), 32}, // 31 times 66 with the space, and 2
		"2049 characters":           {append(paths(31, 65), "abc"), 31},
		"33 and too many of them":   {paths(33, 70), 28},
		"one that is longer itself": {paths(1, 2049), 0},
	} {
		pod := named("web", func(s *corev1.PodSpec) {
			s.DNSPolicy, s.DNSConfig = corev1.DNSNone, &corev1.PodDNSConfig{Searches: row.searches}
		})
		config, warning := DNS(pod, Node{})
		want := ""
		if row.kept < len(row.searches) {
			want = "Search Line limits were exceeded, some search paths have been omitted, the applied search line " +
				"is: " +
				strings.Join(row.searches[:row.kept], " ")
		}
		if len(config.Searches) != row.kept || warning != want {
			t.Errorf("%s: %d are kept with %q, want %d with %q", name, len(config.Searches), warning, row.kept, want)
		}
	}
	both := named("web", func(s *corev1.PodSpec) {
		s.DNSPolicy, s.DNSConfig = corev1.DNSNone, &corev1.PodDNSConfig{Searches: paths(33, 1),
			Nameservers: []string{"a", "b", "c", "d"}}
	})
	if _, warning := DNS(both, Node{}); !strings.Contains(warning, "line is: a b c; Search Line limits") {
		t.Errorf("both: %q", warning)
	}
}

func TestLongSearchListsAreCut(t *testing.T) {
	pod := named("web", func(s *corev1.PodSpec) { s.DNSPolicy, s.DNSConfig = corev1.DNSNone, &corev1.PodDNSConfig{} })
	for i := range 40 {
		pod.Spec.DNSConfig.Searches = append(pod.Spec.DNSConfig.Searches, strings.Repeat(string(rune('a'+i%26)), 70+i))
	}
	config, warning := DNS(pod, Node{})
	if joined := strings.Join(config.Searches, " "); len(joined) > 2048 || len(config.Searches) < 10 ||
		!strings.HasPrefix(warning, "Search Line limits were exceeded") {
		t.Errorf("%d entries, %d characters, %s", len(config.Searches), len(joined), warning)
	}
}
