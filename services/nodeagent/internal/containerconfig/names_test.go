package containerconfig

import (
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func named(name string, change func(*corev1.PodSpec)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "foo", UID: "u-1"}}
	pod.Spec.Containers = []corev1.Container{{Name: "app", Image: "app:1"}}
	if change != nil {
		change(&pod.Spec)
	}
	return pod
}

// POD-021, POD-022, SET-043, SET-047, JOB-048
func TestHostname(t *testing.T) {
	for _, row := range []struct {
		name, hostname, domain string
		change                 func(*corev1.PodSpec)
	}{
		{name: "hello", hostname: "hello"},
		{name: "a.b", hostname: "a.b"},
		{name: strings.Repeat("x", 62) + "-" + "yz", hostname: strings.Repeat("x", 62)},
		{name: "demo-2-abcde", hostname: "demo-2", change: func(s *corev1.PodSpec) { s.Hostname = "demo-2" }},
		{name: "web-0", hostname: "web-0", domain: "nginx.foo.svc.kube.local",
			change: func(s *corev1.PodSpec) { s.Hostname, s.Subdomain = "web-0", "nginx" }},
		{name: "web-0", hostname: "own.name", change: func(s *corev1.PodSpec) {
			s.Subdomain,
				s.HostnameOverride = "nginx", ptr.To("own.name")
		}},
	} {
		hostname, domain, err := Hostname(named(row.name, row.change), "kube.local")
		if err != nil || hostname != row.hostname || domain != row.domain {
			t.Errorf("%s: got %q, %q, %v; want %q, %q", row.name, hostname, domain, err, row.hostname, row.domain)
		}
	}
}

// SET-047: the full name is used only where asked for, and refused where the kernel would not take it.
func TestFullHostname(t *testing.T) {
	pod := named("web-0", func(s *corev1.PodSpec) { s.Subdomain, s.SetHostnameAsFQDN = "nginx", ptr.To(true) })
	if got, err := kernelHostname(pod, "kube.local"); got != "web-0.nginx.foo.svc.kube.local" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	pod.Name = strings.Repeat("n", 50)
	if _, err := kernelHostname(pod, "kube.local"); err == nil || !strings.Contains(err.Error(),
		"too long (64 characters is the max, 75 characters requested)") {
		t.Errorf("got %v", err)
	}
}

func TestHostsFile(t *testing.T) {
	pod := named("web-0", func(s *corev1.PodSpec) {
		s.Subdomain = "nginx"
		s.HostAliases = []corev1.HostAlias{{IP: "192.0.2.9", Hostnames: []string{"db", "db.local"}}}
	})
	got, err := HostsFile(pod, []string{"10.1.0.7", "fd00::7"}, "kube.local", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"127.0.0.1\tlocalhost\n", "10.1.0.7\tweb-0.nginx.foo.svc.kube.local\tweb-0\n",
		"fd00::7\tweb-0.nginx.foo.svc.kube.local\tweb-0\n",
		"192.0.2.9\tdb\tdb.local\n",
	} {
		if !strings.Contains(string(got), line) {
			t.Errorf("no line %q in\n%s", line, got)
		}
	}
	if first, _, _ := strings.Cut(string(got), "\n"); first != "# Kubernetes-managed hosts file." {
		t.Errorf("the first line is %q", first)
	}
	pod.Spec.HostNetwork = true
	got, _ = HostsFile(pod, nil, "kube.local", []byte("10.9.9.9 myhost\n"))
	if !strings.Contains(string(got), "10.9.9.9 myhost\n") || !strings.Contains(string(got), "192.0.2.9\tdb") ||
		strings.Contains(string(got), "web-0") {
		t.Errorf("host network: %s", got)
	}
	if first, _, _ := strings.Cut(string(got), "\n"); first != "# Kubernetes-managed hosts file (host network)." {
		t.Errorf("host network: the first line is %q", first)
	}
}

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

func TestCheckSysctls(t *testing.T) {
	check := func(name string, change func(*corev1.PodSpec), allowed ...string) error {
		pod := named("web", change)
		pod.Spec.SecurityContext = &corev1.PodSecurityContext{Sysctls: []corev1.Sysctl{{Name: name, Value: "1"}}}
		return CheckSysctls(pod, allowed)
	}
	for _, name := range []string{"kernel.shm_rmid_forced", "net/ipv4/tcp_syncookies"} {
		if err := check(name, nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := check("kernel.msgmax", nil); err == nil ||
		err.Error() != `forbidden sysctl: "kernel.msgmax" not allowlisted` {
		t.Errorf("got %v", err)
	}
	if err := check("kernel.msgmax", nil, "kernel.msg*"); err != nil {
		t.Errorf("allowed by pattern: %v", err)
	}
	if err := check("net.ipv4.tcp_syncookies", func(s *corev1.PodSpec) { s.HostNetwork = true }); err == nil {
		t.Error("a network sysctl of the host was allowed")
	}
	if err := check("kernel.shm_rmid_forced", func(s *corev1.PodSpec) { s.HostIPC = true }); err == nil {
		t.Error("an IPC sysctl of the host was allowed")
	}
	if err := CheckSysctls(named("web", nil), nil); err != nil {
		t.Error(err)
	}
}
