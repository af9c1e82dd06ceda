package pod

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestProxiedHost(t *testing.T) {
	p := &corev1.Pod{
		Spec: corev1.PodSpec{Containers: []corev1.Container{{}, {Ports: []corev1.ContainerPort{
			{Name: "admin", ContainerPort: 8080}, {Name: "http", ContainerPort: 8081}}}}},
		Status: corev1.PodStatus{PodIPs: []corev1.PodIP{{IP: "fd00::1"}}},
	}
	p.Name = "web"
	bare := &corev1.Pod{Status: corev1.PodStatus{PodIP: "10.0.0.1"}}
	for _, row := range []struct {
		pod         *corev1.Pod
		asked, want string
	}{
		{p, "", "[fd00::1]:8080"}, {p, "http", "[fd00::1]:8081"}, {p, "65535", "[fd00::1]:65535"}, {p, "0", ""},
		{p, "65536", ""}, {p, "other", ""}, {bare, "", "10.0.0.1:80"}, {&corev1.Pod{}, "80", ""},
	} {
		if got, err := proxiedHost(row.pod, row.asked); got != row.want || (err == nil) != (row.want != "") {
			t.Errorf("%q: %q, %v", row.asked, got, err)
		}
	}
}
