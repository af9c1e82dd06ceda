package podworker

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/events"
	"keelson.dev/kit/podview"
	"keelson.dev/kit/wakeup"
	"keelson.dev/services/nodeagent/internal/checkpoint"
	"keelson.dev/services/nodeagent/internal/lifecycle"
	"keelson.dev/services/nodeagent/internal/observed"
	"keelson.dev/services/nodeagent/internal/podstate"
	"keelson.dev/services/nodeagent/internal/probe"
	"keelson.dev/services/nodeagent/internal/resize"
	"keelson.dev/services/nodeagent/internal/sizes"
	"keelson.dev/services/nodeagent/internal/status"
)

// observeAgain is how long a worker waits after the runtime did not answer.
const observeAgain = time.Second

// worker owns one Pod. All fields but updates belong to its goroutine.
type worker struct {
	pool   *Pool
	config *Config
	log    *zap.Logger
	uid    types.UID

	updates updates // guarded by pool.mu
	wakeup  wakeup.Signal

	pod       *corev1.Pod
	removed   bool
	rejected  bool
	startedAt time.Time
	seen      observed.Pod
	// stale means that seen must be read again.
	stale  bool
	memory podstate.Memory
	saved  checkpoint.Record
	// ended is why the node ended the Pod; nil if it did not.
	ended *checkpoint.Ended
	ops   map[podstate.Key]*operation
	// signals bounds the concurrent signals to containers.
	signals  chan struct{}
	messages map[string]string
	// reported holds, by container name, the waiting reason of the last recorded event.
	reported map[string]string
	// starting means that the Pod is new here and has not run yet; arrived is when it came.
	starting bool
	arrived  time.Time
	// syncing is the current sync, generation the Pod's generation when that began. fresh means that the Pod is new
	// here and that nothing was started for it yet.
	syncing    syncing
	generation int64
	fresh      bool
	// refused is why the node did not admit the Pod.
	refused *podstate.Outcome
	// pending is the resize that is deferred or infeasible, reportedPending the reason of the last event about it;
	// resizing means that a resize is in progress.
	pending         *resize.Pending
	reportedPending string
	resizing        bool
}

func newWorker(pool *Pool, pod *corev1.Pod) *worker {
	w := &worker{
		pool: pool, config: &pool.config, uid: pod.UID, wakeup: wakeup.New(), pod: pod, stale: true,
		log: pool.config.Log.With(zap.String("namespace", pod.Namespace), zap.String("pod", pod.Name),
			zap.String("uid", string(pod.UID))),
		ops: map[podstate.Key]*operation{}, signals: make(chan struct{}, signalsAtOnce),
		memory: podstate.Memory{
			Streaks: map[string]uint32{}, Hooked: map[string]bool{}, MustStop: map[string]podstate.StopReason{},
			Faults: map[podstate.Key]podstate.Fault{}, SandboxesStopped: map[string]bool{},
			Prepared: map[string]bool{}, Released: map[string]bool{}, RefreshAt: map[string]time.Time{},
		},
		messages: map[string]string{}, reported: map[string]string{}, startedAt: time.Now(),
		starting: pod.Status.StartTime == nil, arrived: time.Now(), seen: observed.Pod{UID: string(pod.UID)},
	}
	if pod.Status.StartTime != nil {
		w.startedAt = pod.Status.StartTime.Time
	}
	w.fresh, w.generation = w.starting, pod.Generation
	w.restore()
	w.updates.Allocation = resize.Restore(pod, w.notedSize())
	w.pod = w.updates.Allocated
	if w.updates.Pending != nil {
		w.reportedPending = w.updates.Pending.Reason
	}
	return w
}

// wakeUp wakes the worker; it never blocks.
func (w *worker) wakeUp() {
	w.wakeup.Send()
}

// run makes passes until the Pod is gone or ctx ends. In the latter case it leaves the runtime's containers alone.
func (w *worker) run(ctx context.Context) {
	defer w.await()
	if w.starting {
		w.config.Observer.Taken(time.Since(w.arrived))
	}
	if w.refused != nil {
		w.reject(w.refused)
	}
	for {
		w.pool.passes.begin(w.uid)
		w.takeUpdates()
		wake, gone := w.pass(ctx)
		w.pool.passes.end(w.uid)
		if gone {
			w.cleanUp(ctx)
			return
		}
		if !w.wait(ctx, wake) {
			w.stopAll()
			return
		}
	}
}

// wait returns when updates have come or at wake; false when ctx has ended.
func (w *worker) wait(ctx context.Context, wake time.Time) bool {
	var timer <-chan time.Time
	if !wake.IsZero() {
		t := time.NewTimer(time.Until(wake))
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-ctx.Done():
		return false
	case <-w.wakeup:
	case <-timer:
	}
	return ctx.Err() == nil
}

// takeUpdates takes in what has changed.
func (w *worker) takeUpdates() {
	w.pool.mu.Lock()
	latest := w.updates
	w.updates.observe, w.updates.refresh, w.updates.results = false, false, nil
	w.pool.mu.Unlock()

	if latest.Allocated != w.pod {
		w.renew(latest.Allocated)
	}
	if w.pending = latest.Pending; w.pending != nil && w.saved.Resize == nil {
		w.saveRecord() // the allocated size differs from the desired one
	}
	w.removed = latest.removed
	if latest.evicted != nil && w.memory.Rejection == nil && !podview.IsTerminal(w.pod) {
		w.ended = &checkpoint.Ended{Reason: latest.evicted.Reason, Message: latest.evicted.Message,
			Grace: latest.evicted.Grace, Disruption: latest.evicted.Disruption}
		w.saveRecord()
		w.reject(latest.evicted)
	}
	w.stale = w.stale || latest.observe
	if latest.refresh {
		w.refresh()
	}
	if latest.networked {
		w.retry(podstate.CreateSandbox)
	}
	for _, r := range latest.results {
		w.conclude(r)
	}
}

// reject makes the Pod fail as a whole.
func (w *worker) reject(why *podstate.Outcome) {
	w.memory.Rejection = why
	w.config.Events.Record(w.pod, "", events.Warning(why.Reason, "%s", why.Message))
}

// refresh follows a change of an object that the Pod refers to: it refreshes the contents of volumes, and retries
// at once what failed for lack of the object.
func (w *worker) refresh() {
	w.refreshSteps()
	w.retry(podstate.Prepare, podstate.StartContainer)
}

// retry ends the back-off of actions that have failed.
func (w *worker) retry(kinds ...podstate.Kind) {
	maps.DeleteFunc(w.memory.Faults,
		func(key podstate.Key, _ podstate.Fault) bool { return slices.Contains(kinds, key.Kind) })
}

// refreshSteps makes all prepared steps refresh at once.
func (w *worker) refreshSteps() {
	for step := range w.memory.Prepared {
		w.memory.RefreshAt[step] = time.Now()
	}
}

// renew takes in a new version of the Pod. A changed spec ends the back-off of containers that could not be
// started: the change may be the cure. What volumes show of the Pod is refreshed.
func (w *worker) renew(pod *corev1.Pod) {
	if showsOther(w.pod, pod) {
		w.refreshSteps()
	}
	if pod.Generation != w.pod.Generation {
		w.retry(podstate.StartContainer)
	}
	resized := !sizes.Same(w.pod, pod)
	w.takeSize(pod)
	w.pod = pod
	if resized {
		w.saveRecord()
	}
	if pod.Status.StartTime != nil {
		w.startedAt = pod.Status.StartTime.Time
	}
}

// showsOther reports whether the contents of the Pod's volumes may change: its labels, its annotations, or volumes
// for a new container.
func showsOther(before, after *corev1.Pod) bool {
	return before.Generation != after.Generation || !maps.Equal(before.Labels, after.Labels) ||
		!maps.Equal(before.Annotations, after.Annotations)
}

// conclude takes in the end of an operation.
func (w *worker) conclude(r result) {
	delete(w.ops, r.key)
	w.stale = w.stale || r.observe
	if r.fault == nil {
		delete(w.memory.Faults, r.key)
	} else {
		fault := *r.fault
		fault.At, fault.Count = time.Now(), w.memory.Faults[r.key].Count+1
		w.memory.Faults[r.key] = fault
	}
	if r.remember != nil {
		r.remember(&w.memory)
		w.saveRecord()
	}
}

// pass observes, decides, acts and reports once. It returns when to pass again at the latest, and whether the Pod
// is gone.
func (w *worker) pass(ctx context.Context) (wake time.Time, gone bool) {
	if w.stale {
		pod, err := w.config.Runtime.PodState(ctx, string(w.uid))
		if err != nil {
			if ctx.Err() == nil {
				w.log.Warn("looking at the Pod's containers failed, trying again", zap.Error(err))
			}
			return time.Now().Add(observeAgain), false
		}
		w.seen, w.stale = pod, false
		w.readMessages()
		w.memory.Resize.Forget(func(id string) bool { return w.seen.ByID(id) == nil })
	}
	hold := w.enter()
	now := time.Now()
	probes := w.verdicts()
	plan := podstate.Decide(podstate.Input{
		Now: now, Pod: w.pod, Removed: w.removed, StartedAt: w.startedAt, Observed: &w.seen,
		Memory: w.memory, Steps: w.pool.steps, Probes: probes, Ops: w.inFlight(),
		Hold: hold,
	})
	w.memory.Termination = plan.Termination
	w.recordWaiting(plan)
	for _, key := range plan.Cancel {
		w.ops[key].cancel()
	}
	for _, key := range plan.Recall {
		if w.ops[key].recall() {
			w.wakeUp()
		}
	}
	for _, a := range plan.Actions {
		w.noteRestart(a)
		w.begin(ctx, a)
	}
	wake = w.beginRestartAll(plan)
	w.followResize(plan)
	w.probe(plan)
	w.noteSync(now, time.Now(), plan.Goal)
	w.show(now, plan)
	if !w.removed {
		// By now, in an agent that has just started, the probes have the results from the API.
		w.publish(now, plan, w.verdicts())
	}
	return wake, plan.Gone
}

// publish publishes the Pod's current status.
func (w *worker) publish(now time.Time, plan podstate.Plan, probes map[string]podstate.Probe) {
	s := status.Compute(status.Input{
		Now: now, Pod: w.pod, Observed: &w.seen, Plan: plan, Probes: probes, Messages: w.messages,
		Runtime: w.config.RuntimeName, HostIPs: w.config.HostIPs(), StartedAt: w.startedAt,
		Resize: w.resizeState(), RestartAll: w.memory.RestartAll, Devices: w.devices(),
	})
	w.config.Statuses.Publish(w.pod, s, plan.Goal != podstate.Run && !plan.Stopped)
	if w.starting && s.Phase != corev1.PodPending {
		w.starting = false
		if s.Phase == corev1.PodRunning {
			w.config.Observer.Running(now.Sub(w.arrived))
		}
	}
}

// devices returns the status of the Pod's devices.
func (w *worker) devices() map[string][]corev1.ResourceStatus {
	if w.config.Devices == nil {
		return nil
	}
	return w.config.Devices(w.uid)
}

// recordWaiting records an event for each container that has begun to wait for its next attempt.
func (w *worker) recordWaiting(plan podstate.Plan) {
	for _, e := range lifecycle.Entries(w.pod) {
		waiting := plan.Waiting[e.Spec.Name]
		if waiting.Reason == w.reported[e.Spec.Name] {
			continue
		}
		w.reported[e.Spec.Name] = waiting.Reason
		switch waiting.Reason {
		case podstate.CrashLoopBackOff:
			w.config.Events.Record(w.pod, e.Path, events.Warning(reasonBackOff,
				"Back-off restarting failed container %s in pod %s_%s(%s)",
				e.Spec.Name, w.pod.Name, w.pod.Namespace, w.pod.UID))
		case podstate.ImagePullBackOff:
			w.config.Events.Record(w.pod, e.Path, events.Normal(reasonBackOff, "%s", waiting.Message))
		}
	}
}

// readMessages reads the termination messages of instances that have exited, and reports those that exited since
// the pool was created.
func (w *worker) readMessages() {
	for _, e := range lifecycle.Entries(w.pod) {
		for i := range w.seen.Containers {
			c := &w.seen.Containers[i]
			if _, known := w.messages[c.ID]; c.Name == e.Spec.Name && c.State == observed.Exited && !known {
				w.messages[c.ID] = w.config.Steps.Message(w.pod, e, c)
				if !c.FinishedAt.Before(w.pool.began) {
					w.config.Observer.Ended(e.Kind, c)
				}
			}
		}
	}
	maps.DeleteFunc(w.messages, func(id, _ string) bool { return w.seen.ByID(id) == nil })
}

// probe runs probes for the running instances.
func (w *worker) probe(plan podstate.Plan) {
	var up []probe.Target
	for _, e := range lifecycle.Entries(w.pod) {
		c := w.seen.Latest(e.Spec.Name)
		if c == nil || c.State != observed.Running || plan.Hooking[c.ID] || e.Kind == lifecycle.Init ||
			e.Kind == lifecycle.Ephemeral {
			continue
		}
		t := probe.Target{Pod: w.pod, Container: e.Spec, ContainerID: c.ID, StartedAt: c.StartedAt, IP: w.podIP(),
			Stopping: plan.Goal != podstate.Run}
		if s := w.statusOf(e.Spec.Name); s != nil && s.ContainerID == w.config.RuntimeName+"://"+c.ID {
			t.Started, t.Ready = s.Started != nil && *s.Started, s.Ready
		}
		up = append(up, t)
	}
	w.config.Probes.Sync(w.uid, up)
}

// statusOf returns the API's status of a container, or nil.
func (w *worker) statusOf(name string) *corev1.ContainerStatus {
	for _, list := range [][]corev1.ContainerStatus{w.pod.Status.InitContainerStatuses,
		w.pod.Status.ContainerStatuses} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	return nil
}

// verdicts returns the results of the probes of the known instances.
func (w *worker) verdicts() map[string]podstate.Probe {
	out := map[string]podstate.Probe{}
	for i := range w.seen.Containers {
		id := w.seen.Containers[i].ID
		r, ok := w.config.Probes.Result(id)
		if !ok {
			continue
		}
		v := podstate.Probe{Started: r.Started, Ready: r.Ready}
		if r.Kill != nil {
			v.MustStop = &podstate.StopReason{Reason: reasonUnhealthy, Message: r.Kill.Message +
				", will be restarted",
				Grace: lifecycle.ProbeGrace(w.pod, r.Kill.GracePeriod)}
		}
		out[id] = v
	}
	return out
}

// podIPs returns the addresses at which the Pod's containers are reached.
func (w *worker) podIPs() []string {
	if w.pod.Spec.HostNetwork {
		return w.config.HostIPs()
	}
	if s := w.seen.Sandbox(); s != nil {
		return s.IPs
	}
	return nil
}

func (w *worker) podIP() string {
	if ips := w.podIPs(); len(ips) > 0 {
		return ips[0]
	}
	return ""
}

func (w *worker) inFlight() map[podstate.Key]podstate.Op {
	out := make(map[podstate.Key]podstate.Op, len(w.ops))
	for key, o := range w.ops {
		out[key] = o.op()
	}
	return out
}

// restore loads what an earlier agent recorded.
func (w *worker) restore() {
	record, err := w.config.Records.Load(w.uid)
	if err != nil {
		w.log.Warn("the Pod's record cannot be read and is not used", zap.Error(err))
	}
	w.saved = record
	maps.Copy(w.memory.Streaks, record.Streaks)
	for _, id := range record.Hooked {
		w.memory.Hooked[id] = true
	}
	w.restoreResize(record.Resize)
	w.restoreRestartAll(record.RestartAll)
	w.ended = record.Ended
	if e := record.Ended; e != nil {
		w.memory.Rejection = &podstate.Outcome{Reason: e.Reason, Message: e.Message, Grace: e.Grace,
			Disruption: e.Disruption}
	}
}

// saveRecord saves what a later agent must know, and reports whether it is saved.
func (w *worker) saveRecord() bool {
	record := checkpoint.Record{Streaks: maps.Clone(w.memory.Streaks),
		Hooked: slices.Sorted(maps.Keys(w.memory.Hooked))}
	record.Ended = w.ended
	record.Resize = w.resizeRecord()
	record.RestartAll = w.restartAllRecord()
	if record.Empty() || maps.Equal(record.Streaks, w.saved.Streaks) && slices.Equal(record.Hooked, w.saved.Hooked) &&
		(record.Ended != nil) == (w.saved.Ended != nil) && reflect.DeepEqual(record.Resize, w.saved.Resize) &&
		reflect.DeepEqual(record.RestartAll, w.saved.RestartAll) {
		return true
	}
	if err := w.config.Records.Save(w.uid, record); err != nil {
		w.log.Warn("keeping the Pod's record failed", zap.Error(err))
		return false
	}
	w.saved = record
	return true
}

// cleanUp removes what is left of a Pod.
func (w *worker) cleanUp(ctx context.Context) {
	if err := w.config.Steps.Forget(ctx, w.pod); err != nil {
		w.log.Warn("removing the Pod's logs failed", zap.Error(err))
	}
	if err := w.config.Records.Remove(w.uid); err != nil {
		w.log.Warn("removing the Pod's record failed", zap.Error(err))
	}
	w.config.Probes.Sync(w.uid, nil)
	w.config.Statuses.Forget(w.uid)
	w.pool.forget(w.uid)
	w.log.Info("Pod is gone")
	if w.config.Gone != nil {
		w.config.Gone(w.pod)
	}
}
