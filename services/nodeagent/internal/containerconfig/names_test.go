package containerconfig

import (
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
		{name: strings.Repeat("x", 63), hostname: strings.Repeat("x", 63)},
		{name: strings.Repeat("x", 64), hostname: strings.Repeat("x", 63)},
		{name: strings.Repeat("x", 60) + "-.-z", hostname: strings.Repeat("x", 60)},
		{name: "web-0", hostname: "web-0", change: func(s *corev1.PodSpec) { s.HostnameOverride = ptr.To("") }},
		{name: strings.Repeat("x", 62) + "-" + "yz", hostname: strings.Repeat("x", 62)},
		{name: "demo-2-abcde", hostname: "demo-2", change: func(s *corev1.PodSpec) { s.Hostname = "demo-2" }},
		{name: "web-0", hostname: "web-0", domain: "nginx.foo.svc.kube.local",
			change: func(s *corev1.PodSpec) { s.Hostname, s.Subdomain = "web-0", "nginx" }},
		{name: "web-0", hostname: "own.name", change: func(s *corev1.PodSpec) {
			s.Subdomain,
				s.HostnameOverride = "nginx", ptr.To("own.name")
		}},
	} {
		hostname, domain := Hostname(named(row.name, row.change), "kube.local")
		if hostname != row.hostname || domain != row.domain {
			t.Errorf("%s: got %q, %q; want %q, %q", row.name, hostname, domain, row.hostname, row.domain)
		}
	}
}

// SET-047: the full name is used only if requested, and refused if the kernel would not accept it.
func TestFullHostname(t *testing.T) {
	pod := named("web-0", func(s *corev1.PodSpec) { s.Subdomain, s.SetHostnameAsFQDN = "nginx", ptr.To(true) })
	if got, err := kernelHostname(pod, "kube.local"); got != "web-0.nginx.foo.svc.kube.local" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	pod.Spec.SetHostnameAsFQDN = ptr.To(false)
	if got, err := kernelHostname(pod, "kube.local"); got != "web-0" || err != nil {
		t.Errorf("not asked for: %q, %v", got, err)
	}
	alone := named("web-0", func(s *corev1.PodSpec) { s.SetHostnameAsFQDN = ptr.To(true) })
	if got, err := kernelHostname(alone, "kube.local"); got != "web-0" || err != nil {
		t.Errorf("without a subdomain: %q, %v", got, err)
	}
	pod.Spec.SetHostnameAsFQDN = ptr.To(true)
	pod.Name = strings.Repeat("n", 39) // and 25 of the domain
	if got, err := kernelHostname(pod, "kube.local"); len(got) != 64 || err != nil {
		t.Errorf("the longest: %q, %v", got, err)
	}
	pod.Name = strings.Repeat("n", 40)
	if _, err := kernelHostname(pod, "kube.local"); err == nil || err.Error() != "failed to construct FQDN from pod "+
		"hostname and cluster domain, FQDN "+pod.Name+
		".nginx.foo.svc.kube.local is too long (64 characters is the max, "+
		"65 characters requested)" {
		t.Errorf("one more: %v", err)
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
	got := HostsFile(pod, []string{"10.1.0.7", "fd00::7"}, "kube.local", nil)
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
	got = HostsFile(pod, nil, "kube.local", []byte("10.9.9.9 myhost\n"))
	if !strings.Contains(string(got), "10.9.9.9 myhost\n") || !strings.Contains(string(got), "192.0.2.9\tdb") ||
		strings.Contains(string(got), "web-0") {
		t.Errorf("host network: %s", got)
	}
	if first, _, _ := strings.Cut(string(got), "\n"); first != "# Kubernetes-managed hosts file (host network)." {
		t.Errorf("host network: the first line is %q", first)
	}
	plain := string(HostsFile(named("web-0", nil), []string{"10.1.0.7"}, "kube.local", []byte("10.9.9.9 myhost\n")))
	if !strings.HasSuffix(plain, "\n10.1.0.7\tweb-0\n") || strings.Contains(plain, "myhost") ||
		strings.Contains(plain, "HostAliases") {
		t.Errorf("a Pod on its own: %s", plain)
	}
}
