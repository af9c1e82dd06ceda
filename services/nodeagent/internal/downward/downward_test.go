package downward

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

func view() View {
	return View{
		Pod: &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: "web", Namespace: "shop", UID: "u-1",
				Labels:      map[string]string{"mylabel": "x"},
				Annotations: map[string]string{"myannotation": "y", "multi": "a\n\"b\""},
			},
			Spec: corev1.PodSpec{NodeName: "n1", ServiceAccountName: "robot", Containers: []corev1.Container{
				{Name: "small", Resources: corev1.ResourceRequirements{
					Limits: corev1.ResourceList{
						corev1.ResourceCPU:                   resource.MustParse("250m"),
						corev1.ResourceMemory:                resource.MustParse("100Mi"),
						corev1.ResourceName("hugepages-2Mi"): resource.MustParse("4Mi"),
					},
					Requests: corev1.ResourceList{corev1.ResourceEphemeralStorage: resource.MustParse("1500")},
				}},
				{Name: "free"},
			}, InitContainers: []corev1.Container{{Name: "early", Resources: corev1.ResourceRequirements{
				Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("300m")}}}}},
		},
		PodIPs:  []string{"10.1.0.7", "fd00::7"},
		HostIPs: []string{"192.0.2.1", "fd00::1"},
	}
}

// SAF-110, SAF-111, SAF-112, SAF-113, SAF-114
func TestField(t *testing.T) {
	for path, want := range map[string]string{
		"metadata.name":                        "web",
		"metadata.namespace":                   "shop",
		"metadata.uid":                         "u-1",
		"metadata.labels['mylabel']":           "x",
		"metadata.annotations['myannotation']": "y",
		"metadata.labels['none']":              "",
		"spec.nodeName":                        "n1",
		"spec.serviceAccountName":              "robot",
		"status.podIP":                         "10.1.0.7",
		"status.podIPs":                        "10.1.0.7,fd00::7",
		"status.hostIP":                        "192.0.2.1",
		"status.hostIPs":                       "192.0.2.1,fd00::1",
		"metadata.labels":                      `mylabel="x"`,
		"metadata.annotations":                 "multi=\"a\\n\\\"b\\\"\"\nmyannotation=\"y\"",
	} {
		got, err := view().Field(path)
		if err != nil || got != want {
			t.Errorf("Field(%s) = %q, %v; want %q", path, got, err, want)
		}
	}
	for _, path := range []string{"", "spec.replicas", "metadata.labels[mylabel]", "status.phase['x']"} {
		if _, err := view().Field(path); err == nil {
			t.Errorf("Field(%q): no error", path)
		}
	}
}

// SAF-113: an address that is not known yet is empty, never a panic.
func TestFieldWithoutAddresses(t *testing.T) {
	v := View{Pod: &corev1.Pod{}}
	for _, path := range []string{"status.podIP", "status.podIPs", "status.hostIP", "status.hostIPs"} {
		if got, err := v.Field(path); got != "" || err != nil {
			t.Errorf("Field(%s) = %q, %v", path, got, err)
		}
	}
}

// SAF-115
func TestMap(t *testing.T) {
	got := Map(map[string]string{"zone": "us-est-coast", "cluster": "test"})
	if want := "cluster=\"test\"\nzone=\"us-est-coast\""; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// SAF-115: for any values, each entry is one line.
func TestMapKeepsOneLinePerEntry(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.MapOfN(rapid.StringMatching(`[a-z]{1,8}`), rapid.String(), 1, 6).Draw(t, "map")
		if lines := strings.Split(Map(m), "\n"); len(lines) != len(m) {
			t.Fatalf("%d lines for %d entries", len(lines), len(m))
		}
	})
}

// SAF-117, SAF-118, SAF-119
func TestResource(t *testing.T) {
	node := corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("4"),
		corev1.ResourceMemory:           resource.MustParse("8Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("50Gi"),
	}
	for _, row := range []struct{ container, resource, divisor, want string }{
		{"small", "limits.cpu", "0", "1"},
		{"small", "limits.cpu", "1m", "250"},
		{"small", "limits.memory", "0", "104857600"},
		{"small", "limits.memory", "1Mi", "100"},
		{"small", "limits.memory", "1Gi", "1"},
		{"small", "limits.hugepages-2Mi", "1Mi", "4"},
		{"small", "requests.ephemeral-storage", "1k", "2"},
		{"free", "limits.cpu", "0", "4"},
		{"free", "limits.memory", "0", "8589934592"},
		{"free", "limits.ephemeral-storage", "1Gi", "50"},
		{"free", "requests.cpu", "1m", "0"},
		{"free", "limits.hugepages-2Mi", "0", "0"},
		{"small", "limits.cpu", "250m", "1"},
		{"small", "limits.cpu", "249m", "2"},
		{"small", "limits.cpu", "2", "1"},
		{"small", "limits.memory", "104857599", "2"},
		{"small", "requests.ephemeral-storage", "1500", "1"},
		{"small", "requests.ephemeral-storage", "1499", "2"},
		{"small", "requests.hugepages-2Mi", "0", "0"},
		{"early", "limits.cpu", "1m", "300"},
		{"early", "limits.memory", "0", "8589934592"},
	} {
		ref := &corev1.ResourceFieldSelector{ContainerName: row.container, Resource: row.resource,
			Divisor: resource.MustParse(row.divisor)}
		got, err := view().Resource(nil, ref, node)
		if err != nil || got != row.want {
			t.Errorf("%s %s / %s = %q, %v; want %q", row.container, row.resource, row.divisor, got, err, row.want)
		}
	}
	for _, bad := range []corev1.ResourceFieldSelector{
		{ContainerName: "none", Resource: "limits.cpu"},
		{ContainerName: "free", Resource: "limits.gpu"},
		{ContainerName: "free", Resource: "usage.cpu"},
		{ContainerName: "free", Resource: "cpu"},
		{ContainerName: "", Resource: "limits.cpu"},
		{ContainerName: "free", Resource: ""},
		{ContainerName: "free", Resource: "limits."},
		{ContainerName: "free", Resource: "limits.hugepages"},
		{ContainerName: "free", Resource: "limits.example.com/dongle"},
	} {
		if _, err := view().Resource(nil, &bad, node); err == nil {
			t.Errorf("%+v: no error", bad)
		}
	}
}

// SAF-119: a limit that neither the container nor its Pod has is the node's; the Pod's limit bounds the container.
func TestLimitOfThePod(t *testing.T) {
	v := view()
	v.Pod.Spec.Resources = &corev1.ResourceRequirements{
		Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"),
			corev1.ResourceMemory: resource.MustParse("0"), "hugepages-2Mi": resource.MustParse("6Mi")},
		Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Mi")},
	}
	node := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"),
		corev1.ResourceMemory: resource.MustParse("8Gi"), "hugepages-2Mi": resource.MustParse("1Gi")}
	for _, row := range []struct{ container, resource, want string }{
		{"free", "limits.cpu", "2"}, {"small", "limits.cpu", "1"}, {"free", "limits.memory", "8589934592"},
		{"free", "limits.hugepages-2Mi", "6291456"}, {"small", "limits.hugepages-2Mi", "4194304"},
		{"free", "requests.memory", "0"}, {"free", "limits.hugepages-1Gi", "0"},
	} {
		ref := &corev1.ResourceFieldSelector{ContainerName: row.container, Resource: row.resource}
		if got, err := v.Resource(nil, ref, node); err != nil || got != row.want {
			t.Errorf("%s of %s: %q, %v; want %q", row.resource, row.container, got, err, row.want)
		}
	}
	v.Pod.Spec.Containers[1].Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("0")}
	ref := &corev1.ResourceFieldSelector{ContainerName: "free", Resource: "limits.cpu"}
	if got, err := v.Resource(nil, ref, node); err != nil || got != "2" {
		t.Errorf("a limit of zero is none: %q, %v", got, err)
	}
}

// SAF-118: an environment variable refers to its own container.
func TestResourceOfTheOwnContainer(t *testing.T) {
	v := view()
	got, err := v.Resource(&v.Pod.Spec.Containers[0], &corev1.ResourceFieldSelector{Resource: "limits.cpu",
		Divisor: resource.MustParse("1m")}, nil)
	if err != nil || got != "250" {
		t.Errorf("got %q, %v", got, err)
	}
}
