package qos

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

func TestIsCritical(t *testing.T) {
	withPriority := func(p *int32) *corev1.Pod { return &corev1.Pod{Spec: corev1.PodSpec{Priority: p}} }
	pretends := withPriority(nil)
	pretends.Annotations = map[string]string{"kubernetes.io/config.source": "file", "kubernetes.io/config.mirror": "x"}
	for _, r := range []struct {
		name   string
		pod    *corev1.Pod
		static bool
		want   bool
	}{
		{"without a priority", withPriority(nil), false, false},
		{"just below system-cluster-critical", withPriority(ptr.To(int32(1999999999))), false, false},
		{"system-cluster-critical", withPriority(ptr.To(int32(2000000000))), false, true},
		{"system-node-critical", withPriority(ptr.To(int32(2000001000))), false, true},
		{"from a file of the node", withPriority(nil), true, true},
		{"annotated as if it were", pretends, false, false},
	} {
		if got := IsCritical(r.pod, r.static); got != r.want {
			t.Errorf("%s: critical %v, want %v", r.name, got, r.want)
		}
	}
}
