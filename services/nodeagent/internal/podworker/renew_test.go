package podworker

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/services/nodeagent/internal/podstate"
)

// SAF-120: a change of labels or annotations reaches the files of downward API volumes; a change of the status does
// not set up the volumes again.
func TestRenewRefreshesWhatVolumesShow(t *testing.T) {
	base := func() *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Generation: 1, Labels: map[string]string{"a": "1"},
			Annotations: map[string]string{"b": "2"}}}
	}
	for name, row := range map[string]struct {
		change func(*corev1.Pod)
		want   bool
	}{
		"nothing":    {func(*corev1.Pod) {}, false},
		"status":     {func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }, false},
		"label":      {func(p *corev1.Pod) { p.Labels["a"] = "x" }, true},
		"annotation": {func(p *corev1.Pod) { delete(p.Annotations, "b") }, true},
		"spec":       {func(p *corev1.Pod) { p.Generation = 2 }, true},
	} {
		later := time.Now().Add(time.Hour)
		w := &worker{pod: base(), memory: podstate.Memory{Prepared: map[string]bool{"volumes": true},
			RefreshAt: map[string]time.Time{"volumes": later}}}
		changed := base()
		row.change(changed)
		w.renew(changed)
		if got := w.memory.RefreshAt["volumes"].Before(later); got != row.want || w.pod != changed {
			t.Errorf("%s: refreshed %v, want %v", name, got, row.want)
		}
	}
}

// POD-084: a Pod that waits for a missing object goes on as soon as the object exists.
func TestRefreshTriesAgainAtOnce(t *testing.T) {
	fault := podstate.Fault{Count: 5, At: time.Now()}
	step, other := podstate.Key{Kind: podstate.Prepare, Object: "volumes"}, podstate.Key{Kind: podstate.StopContainer,
		Object: "c"}
	w := &worker{memory: podstate.Memory{Faults: map[podstate.Key]podstate.Fault{step: fault,
		podstate.StartKey("c"): fault, other: fault}}}
	w.refresh()
	if len(w.memory.Faults) != 1 || w.memory.Faults[other] != fault || len(w.memory.RefreshAt) != 0 {
		t.Errorf("faults %v, refresh at %v", w.memory.Faults, w.memory.RefreshAt)
	}
}
