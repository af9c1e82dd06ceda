package tolerationseconds

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestDecide(t *testing.T) {
	const notReady, unreachable = corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable
	for _, row := range []struct {
		name string
		have []corev1.Toleration
		want []string
	}{
		{"none", nil, []string{notReady, unreachable}},
		{"one of its own", []corev1.Toleration{{Key: notReady, Operator: "Exists", Effect: "NoExecute"}},
			[]string{unreachable}},
		{"any effect", []corev1.Toleration{{Key: notReady, Operator: "Exists"}}, []string{unreachable}},
		{"another effect", []corev1.Toleration{{Key: notReady, Operator: "Exists", Effect: "NoSchedule"}},
			[]string{notReady, unreachable}},
		{"everything", []corev1.Toleration{{Operator: "Exists"}}, nil},
		{"something else", []corev1.Toleration{{Key: "a", Operator: "Exists", Effect: "NoExecute"}},
			[]string{notReady, unreachable}},
	} {
		t.Run(row.name, func(t *testing.T) {
			added := decide(row.have)
			var keys []string
			for _, toleration := range added {
				keys = append(keys, toleration.Key)
				if *toleration.TolerationSeconds != 300 || toleration.Operator != corev1.TolerationOpExists ||
					toleration.Effect != corev1.TaintEffectNoExecute {
					t.Errorf("added %+v", toleration)
				}
			}
			if !slices.Equal(keys, row.want) {
				t.Errorf("added %v, want %v", keys, row.want)
			}
			if again := decide(append(slices.Clone(row.have), added...)); len(again) > 0 {
				t.Errorf("a second pass adds %v", again)
			}
		})
	}
}
