package podworker

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/events"
	"keelson.dev/kit/podview"
	"keelson.dev/services/nodeagent/internal/checkpoint"
	"keelson.dev/services/nodeagent/internal/podstate"
	"keelson.dev/services/nodeagent/internal/resize"
	"keelson.dev/services/nodeagent/internal/sizes"
	"keelson.dev/services/nodeagent/internal/status"
)

// Settle notes that all Pods of the node are known: from now on the pool decides on resizes.
func (p *Pool) Settle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.settled = true
	p.resizeLocked()
}

// acceptLocked takes in a version of the worker's Pod.
func (p *Pool) acceptLocked(w *worker, pod *corev1.Pod) {
	if w.updates.Accept(pod) {
		p.resizing[w.uid] = true
	} else {
		delete(p.resizing, w.uid)
	}
}

// resizeLocked decides on the resizes that Pods wait for.
func (p *Pool) resizeLocked() {
	if len(p.resizing) == 0 || !p.settled {
		return
	}
	in := resize.Input{PinsCPUs: p.config.PinsCPUs, SwapOf: p.config.Memory.SwapOf}
	if p.config.Allocatable != nil {
		in.Allocatable = p.config.Allocatable()
	}
	for uid, w := range p.workers {
		u := &w.updates
		switch {
		case podview.IsTerminal(u.Allocated) || w.rejected:
		case !p.resizing[uid] || u.removed || podview.IsTerminating(u.Allocated):
			in.Others = append(in.Others, u.Allocated)
		default:
			in.Candidates = append(in.Candidates, u.Candidate())
		}
	}
	for uid, verdict := range resize.Decide(in) {
		p.answerLocked(uid, verdict)
	}
}

func (p *Pool) answerLocked(uid types.UID, verdict resize.Verdict) {
	w := p.workers[uid]
	if verdict.Granted() {
		delete(p.resizing, uid)
	}
	if w.updates.Answer(verdict, time.Now()) {
		w.wakeUp()
	}
}

// notedSize returns the size that an earlier agent recorded as allocated; nil if it recorded none.
func (w *worker) notedSize() *sizes.Size {
	if w.saved.Resize == nil {
		return nil
	}
	return &w.saved.Resize.Allocated
}

// takeSize records a change of the size that the node allocates the Pod, before anything is done about it.
func (w *worker) takeSize(pod *corev1.Pod) {
	if sizes.Same(w.pod, pod) {
		return
	}
	w.memory.Resize.Begin(sizes.Of(w.pod))
	w.resizing = true
	delete(w.memory.Faults, podstate.ResizeKey)
	w.refreshSteps()
	w.config.Events.Record(pod, "", events.Normal(reasonResizeStarted, "Pod resize started: %s",
		describeResize(pod, nil)))
}

// atMax returns the Pod at a size that has room for both its cgroup's size and the allocated one.
func (w *worker) atMax() *corev1.Pod {
	if w.memory.Resize.Cgroup == nil {
		return w.pod
	}
	return w.memory.Resize.Max(sizes.Of(w.pod)).Apply(w.pod)
}

// followResize records events about the progress of resizes.
func (w *worker) followResize(plan podstate.Plan) {
	if w.pending != nil && w.pending.Reason != w.reportedPending {
		reason := reasonResizeDeferred
		if w.pending.Reason == corev1.PodReasonInfeasible {
			reason = reasonResizeInfeasible
		}
		w.config.Events.Record(w.pod, "", events.Warning(reason, "Pod resize %s: %s", w.pending.Reason,
			w.pending.Message))
	}
	if w.reportedPending = ""; w.pending != nil {
		w.reportedPending = w.pending.Reason
	}
	if w.resizing && !plan.Resizing && plan.Goal == podstate.Run {
		w.config.Events.Record(w.pod, "", events.Normal(reasonResizeCompleted, "Pod resize completed: %s",
			describeResize(w.pod, nil)))
	}
	w.resizing = plan.Resizing
}

// resizeState returns what the Pod's status reports about resizes.
func (w *worker) resizeState() status.Resize {
	state := status.Resize{Actuation: w.memory.Resize, Problem: w.memory.Faults[podstate.ResizeKey].Message}
	if w.pending != nil {
		waiting := podstate.Waiting(w.pending.Verdict)
		state.Pending = &waiting
	}
	return state
}

// noteRestart records that an instance ends for a restart at another size, before it ends.
func (w *worker) noteRestart(a podstate.Action) {
	if a.Kind != podstate.StopContainer || a.Reason != podstate.ReasonResize {
		return
	}
	w.memory.Resize.NoteRestart(a.ID)
	w.saveRecord()
}

// resizeRecord returns what a later agent must know of the Pod's resizes; nil if there were none.
func (w *worker) resizeRecord() *checkpoint.Resize {
	r := &w.memory.Resize
	if w.saved.Resize == nil && r.Cgroup == nil && w.pending == nil {
		return nil
	}
	return &checkpoint.Resize{Allocated: sizes.Of(w.pod), Cgroup: r.Cgroup, Updated: maps.Clone(r.Updated),
		Restarted: slices.Sorted(maps.Keys(r.Restarted))}
}

// restoreResize takes over what an earlier agent recorded.
func (w *worker) restoreResize(record *checkpoint.Resize) {
	if record == nil {
		return
	}
	w.memory.Resize = resize.Actuation{Cgroup: record.Cgroup, Updated: maps.Clone(record.Updated)}
	for _, id := range record.Restarted {
		w.memory.Resize.NoteRestart(id)
	}
}

// describeResize describes a resize as the kubelet's events do.
func describeResize(pod *corev1.Pod, problem error) string {
	type container struct {
		Name      string                      `json:"name"`
		Resources corev1.ResourceRequirements `json:"resources"`
	}
	shown := struct {
		Containers []container                  `json:"containers"`
		Resources  *corev1.ResourceRequirements `json:"resources,omitempty"`
		Generation int64                        `json:"generation"`
		Error      string                       `json:"error,omitempty"`
	}{Resources: pod.Spec.Resources, Generation: pod.Generation}
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		shown.Containers = append(shown.Containers, container{Name: c.Name, Resources: c.Resources})
	}
	if problem != nil {
		shown.Error = problem.Error()
	}
	text, err := json.Marshal(shown)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
