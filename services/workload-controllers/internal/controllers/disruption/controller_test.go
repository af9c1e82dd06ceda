package disruption

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/services/workload-controllers/internal/podset"
)

// A Pod that leaves a budget by its labels is told of at once, as one that comes.
func TestOnPod(t *testing.T) {
	index := podset.NewIndex()
	c := &Controller{selected: podset.NewSelections(index)}
	c.selected.Put(budget(atLeast("1"), nil), &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}})
	labelled := func(app string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", UID: "u",
			Labels: map[string]string{"app": app}}}
	}
	for _, row := range []struct {
		app  string
		want []string
	}{{"web", []string{"web"}}, {"web", []string{"web"}}, {"debug", []string{"web"}}, {"other", nil}} {
		pod := labelled(row.app)
		var got []string
		for _, request := range c.onPod(pod, index.Upsert(pod)) {
			got = append(got, request.Name)
		}
		if !slices.Equal(got, row.want) {
			t.Errorf("labelled %s: wakes %v, want %v", row.app, got, row.want)
		}
	}
}
