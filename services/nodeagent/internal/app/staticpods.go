package app

import (
	"context"
	"path/filepath"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/events"
	"keelson.dev/kit/podview"
	"keelson.dev/services/nodeagent/internal/admit"
	"keelson.dev/services/nodeagent/internal/podstate"
	"keelson.dev/services/nodeagent/internal/podworker"
	"keelson.dev/services/nodeagent/internal/staticpods"
	"keelson.dev/services/nodeagent/internal/statuswriter"
)

func (a *agent) newStatic() *staticpods.Source {
	return staticpods.New(staticpods.Config{
		Log: a.Log, Path: a.PodManifestPath, NodeName: a.NodeName, Records: filepath.Join(a.RootDir, "staticpods"),
		Set:    func(pod *corev1.Pod, known bool) { a.pool.Set(pod, known) },
		Remove: func(uid types.UID) { a.pool.Remove(uid) },
		Known:  func(uid types.UID) bool { return a.before[uid] },
		Client: a.client.CoreV1(), Statuses: a.statuses, MakeRoom: a.makeRoom,
		Owner: func() types.UID { return a.node.Current().UID },
		Record: func(e events.Event) {
			a.events.Recorder.Record(&corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: a.NodeName,
				UID: a.node.Current().UID}, e)
		},
	})
}

// apiPods takes what the API has: Pods for their workers, and mirrors of static Pods, which are not run.
type apiPods struct {
	workers *podworker.Pool
	static  *staticpods.Source
}

// Set implements podsource.Workers.
func (p apiPods) Set(pod *corev1.Pod, known bool) {
	if podview.IsMirror(pod) {
		p.static.SetMirror(pod)
		return
	}
	p.workers.Set(pod, known)
}

// Remove implements podsource.Workers.
func (p apiPods) Remove(uid types.UID) {
	p.static.RemoveMirror(uid)
	p.workers.Remove(uid)
}

// seen takes a version of a Pod from the answer to a write.
func (p apiPods) seen(pod *corev1.Pod) {
	if podview.IsMirror(pod) {
		p.static.SeeMirror(pod)
		return
	}
	p.workers.Set(pod, true)
}

// statuses takes the statuses of all Pods: those of static Pods are written to their mirrors.
type statuses struct {
	*statuswriter.Writer
	static *staticpods.Source
}

// Publish implements podworker.Statuses.
func (s statuses) Publish(pod *corev1.Pod, status corev1.PodStatus, brief bool) {
	if s.static.Runs(pod.UID) {
		s.static.Publish(pod, status, brief)
		return
	}
	s.Writer.Publish(pod, status, brief)
}

// Delete implements podworker.Statuses. The API has no object of a static Pod; its mirror follows.
func (s statuses) Delete(ctx context.Context, pod *corev1.Pod) error {
	if s.static.Runs(pod.UID) {
		return nil
	}
	return s.Writer.Delete(ctx, pod)
}

// makeRoom reports whether a static Pod can be admitted now; if necessary it ends Pods of the API for it.
func (a *agent) makeRoom(pod *corev1.Pod) bool {
	var residents []admit.Resident
	for other, leaving := range a.pool.Active() {
		residents = append(residents, admit.Resident{Pod: other, Static: a.static.Runs(other.UID), Leaving: leaving})
	}
	room := admit.MakeRoom(pod, residents, a.allocatable())
	for _, victim := range room.Victims {
		a.Log.Info("ending a Pod to make room for a static one", zap.String("namespace", victim.Namespace),
			zap.String("pod", victim.Name), zap.String("for", pod.Namespace+"/"+pod.Name))
		a.pool.Evict(victim.UID, podstate.Outcome{Reason: "Preempting",
			Message: "Preempted in order to admit critical pod", Disruption: true})
	}
	return !room.Wait
}
