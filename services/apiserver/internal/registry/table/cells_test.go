package table

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestCells(t *testing.T) {
	containers := []corev1.Container{{Name: "a", Image: "x:1"}, {Name: "b", Image: "y:2"}}
	rows := []struct{ name, got, want string }{
		{"no items", Joined(nil, ","), "<none>"},
		{"items", Joined([]string{"a", "b"}, ", "), "a, b"},
		{"no labels", Labels(nil), "<none>"},
		{"labels in key order", Labels(map[string]string{"b": "2", "a": "1"}), "a=1,b=2"},
		{"no selector", Selector(nil), "<none>"},
		{"selector", Selector(&metav1.LabelSelector{MatchLabels: map[string]string{"a": "1"}}), "a=1"},
		{"container names", ContainerNames(containers), "a,b"},
		{"container images", ContainerImages(containers), "x:1,y:2"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			if row.got != row.want {
				t.Errorf("got %q, want %q", row.got, row.want)
			}
		})
	}
}
