package podworker

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/podview"
	"keelson.dev/services/nodeagent/internal/probe"
)

// A ready Pod stays ready while its agent restarts: its Services keep it all the time.
func TestReadyPodStaysReady(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put(newPod(func(p *corev1.Pod) { p.Spec.Containers[0].ReadinessProbe = &corev1.Probe{} }))
		w.after(time.Second)
		id := strings.TrimPrefix(w.get("u1").Status.ContainerStatuses[0].ContainerID, "fake://")
		w.mu.Lock()
		w.probes[id] = probe.Result{Started: true, Ready: true}
		w.mu.Unlock()
		w.pool.Notify("u1")
		w.after(time.Second)
		w.start()
		w.after(time.Minute)
		w.expect("losses of readiness", logged(w, "unready"))
		if !podview.IsReady(w.get("u1")) {
			t.Errorf("the Pod is not ready: %+v", w.get("u1").Status.Conditions)
		}
	})
}
