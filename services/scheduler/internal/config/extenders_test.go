package config

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/rules"
)

func TestExtenders(t *testing.T) {
	c, err := Parse([]byte(head + `extenders:
- {urlPrefix: 'http://127.0.0.1:1/a', filterVerb: filter, prioritizeVerb: prioritize, weight: 1, nodeCacheCapable: true}
- {urlPrefix: 'https://host/b', enableHTTPS: true, bindVerb: bind, preemptVerb: preempt, ignorable: true,
  httpTimeout: 2s, tlsConfig: {insecure: true, serverName: other},
  managedResources: [{name: example.com/gpu, ignoredByScheduler: true}, {name: example.com/nic}]}
`))
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Extenders) != 2 || c.Extenders[0].HTTPTimeout.Duration != 5*time.Second ||
		c.Extenders[1].HTTPTimeout.Duration != 2*time.Second {
		t.Errorf("extenders are %+v", c.Extenders)
	}
	if got := refusedFor(c.Profiles[0]); !slices.Equal(got, []string{"Insufficient example.com/nic"}) {
		t.Errorf("an empty node is refused for %q", got)
	}
}

// What extenders manage beside the scheduler is ignored in every profile, whatever else its arguments ignore.
func TestIgnoredByScheduler(t *testing.T) {
	c, err := Parse([]byte(args("NodeResourcesFit", "ignoredResources: [example.com/nic]") + `
extenders: [{urlPrefix: 'http://x', managedResources: [{name: example.com/gpu, ignoredByScheduler: true}]}]`))
	if err != nil {
		t.Fatal(err)
	}
	if got := refusedFor(c.Profiles[0]); len(got) > 0 {
		t.Errorf("an empty node is refused for %q", got)
	}
}

// A resource that is not extended cannot be ignored, not even by what stands before a slash.
func TestResourcesThatCannotBeIgnored(t *testing.T) {
	for _, ignored := range []string{"ignoredResources: [hugepages-2Mi, a.kubernetes.io/b]",
		"ignoredResourceGroups: [hugepages-2Mi, a.kubernetes.io]"} {
		c, err := Parse([]byte(args("NodeResourcesFit", ignored)))
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(c.Profiles[0].Rules, func(r rules.Rule) bool { return r.Name == "NodeResourcesFit" })
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"hugepages-2Mi": resource.MustParse("2Mi"),
				"a.kubernetes.io/b": resource.MustParse("1")}}}}}}
		texts := c.Profiles[0].Rules[i].Filter(rules.PodOf(pod, columns.New(1).Usage(pod))).Texts
		for _, want := range []string{"Insufficient hugepages-2Mi", "Insufficient a.kubernetes.io/b"} {
			if !slices.Contains(texts, want) {
				t.Errorf("%s: refuses for %q, want also %q", ignored, texts, want)
			}
		}
	}
}

// refusedFor returns the reasons that the rule of resources has against nodes for a Pod of two extended resources.
func refusedFor(p rules.Profile) []string {
	one := resource.MustParse("1")
	i := slices.IndexFunc(p.Rules, func(r rules.Rule) bool { return r.Name == "NodeResourcesFit" })
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{"example.com/gpu": one, "example.com/nic": one}}}}}}
	return slices.DeleteFunc(slices.Compact(slices.Sorted(slices.Values(p.Rules[i].Filter(rules.PodOf(pod,
		columns.New(1).Usage(pod))).Texts))),
		func(text string) bool { return !strings.Contains(text, "example.com") })
}

func TestMistakesOfExtenders(t *testing.T) {
	for name, test := range map[string]struct{ extenders, want string }{
		"no URL": {"filterVerb: f",
			`[0].urlPrefix: "", it must be a URL such as "http://host:8888/scheduler"`},
		"no host": {"urlPrefix: '/a'",
			`[0].urlPrefix: "/a", it must be a URL such as "http://host:8888/scheduler"`},
		"another protocol": {"urlPrefix: 'ftp://a'",
			`[0].urlPrefix: "ftp://a", it must be a URL such as "http://host:8888/scheduler"`},
		"a query": {"urlPrefix: 'https://a?b', enableHTTPS: true",
			`[0].urlPrefix: "https://a?b", it must be a URL such as "https://host:8888/scheduler"`},
		"HTTPS without": {"urlPrefix: 'https://a'",
			`[0].urlPrefix: it begins with "https://", with enableHTTPS false it must begin with "http://"`},
		"HTTPS over HTTP": {"urlPrefix: 'http://a', enableHTTPS: true",
			`[0].urlPrefix: it begins with "http://", with enableHTTPS true it must begin with "https://"`},
		"a time-out": {"urlPrefix: 'http://a', httpTimeout: -1s", "[0].httpTimeout: -1s, it must not be negative"},
		"no weight": {"urlPrefix: 'http://a', prioritizeVerb: p",
			"[0].weight: 0, it must be from 1 to 1000000 with a prioritizeVerb"},
		"a weight": {"urlPrefix: 'http://a', prioritizeVerb: p, weight: 1000001",
			"[0].weight: 1000001, it must be from 1 to 1000000 with a prioritizeVerb"},
		"a resource": {"urlPrefix: 'http://a', managedResources: [{name: a b}]",
			`[0].managedResources[0].name: "a b": ` + qualified},
		"cpu": {"urlPrefix: 'http://a', managedResources: [{name: cpu}]",
			`[0].managedResources[0].name: "cpu", it must be an extended resource, such as "example.com/gpu"`},
		"a resource of the mesh": {"urlPrefix: 'http://a', managedResources: [{name: a.kubernetes.io/b}]",
			`[0].managedResources[0].name: "a.kubernetes.io/b", it must be an extended resource, such as "example.com/gpu"`},
		"a resource twice": {"urlPrefix: 'http://a', managedResources: [{name: a.b/c}]}, {urlPrefix: 'http://b', " +
			"managedResources: [{name: a.b/c}]", `[1].managedResources[0].name: extenders[0] manages "a.b/c" already`},
		"two binders": {
			"urlPrefix: 'http://a', bindVerb: b}, {urlPrefix: 'http://a'}, {urlPrefix: 'http://b', bindVerb: b",
			"[2].bindVerb: extenders[0] binds already, only one may"},
		"TLS without": {"urlPrefix: 'http://a', tlsConfig: {insecure: true}", "[0].tlsConfig: it needs enableHTTPS"},
		"half a certificate": {"urlPrefix: 'https://a', enableHTTPS: true, tlsConfig: {certData: YQ==}",
			"[0].tlsConfig: a certificate and its key must stand together"},
		"not verified by": {"urlPrefix: 'https://a', enableHTTPS: true, tlsConfig: {insecure: true, caData: YQ==}",
			"[0].tlsConfig.insecure: it must not stand beside caFile or caData"},
		"no certificate": {"urlPrefix: 'https://a', enableHTTPS: true, tlsConfig: {caData: YQ==}",
			"[0].tlsConfig: unable to load root certificates: unable to parse bytes as PEM block"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(head + "extenders: [{" + test.extenders + "}]"))
			if err == nil || err.Error() != "extenders"+test.want {
				t.Errorf("error %v, want extenders%s", err, test.want)
			}
		})
	}
}
