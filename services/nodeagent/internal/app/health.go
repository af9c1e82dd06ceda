package app

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/nodeagent/internal/cgroup"
	"keelson.dev/services/nodeagent/internal/containerlog"
	"keelson.dev/services/nodeagent/internal/node"
	"keelson.dev/services/nodeagent/internal/plainfile"
	"keelson.dev/services/nodeagent/internal/runtime"
)

// Problems that keep the node from being ready, in readable form.
const (
	problemRuntime   = "container runtime is down: "
	problemNetwork   = "container runtime network not ready: "
	problemUnsettled = "the node is still taking up its Pods and ending those that the API has forgotten"
)

// health determines the health of the node.
func (a *agent) health(ctx context.Context) node.Health {
	var h node.Health
	status, err := a.runtime.Status(ctx)
	switch {
	case err != nil:
		h.RuntimeProblem = problemRuntime + err.Error()
	case status.RuntimeProblem != "":
		h.RuntimeProblem = problemRuntime + status.RuntimeProblem
	case !a.settled.Load():
		h.RuntimeProblem = problemUnsettled
	}
	if a.podNetwork != nil {
		problem := a.podNetwork.Problem()
		h.PodNetwork = &problem
	}
	h.Pressures = a.pressure.Conditions()
	h.VolumesInUse = a.drivers.InUse()
	h.Images = a.images.list(ctx, a.runtime, a.Log)
	if err == nil {
		a.told.Store(&status)
		h.Runtime = node.RuntimeOf(status)
		if status.NetworkProblem != "" {
			h.NetworkProblem = problemNetwork + status.NetworkProblem
		}
		if lacked := a.unnetworked.Swap(status.NetworkProblem != ""); lacked && status.NetworkProblem == "" {
			a.pool.Networked()
		}
	}
	return h
}

// imagesFor is how long a list of the node's images may be used for the Node's status.
const imagesFor = 30 * time.Second

// imageList is the Node's list of its images.
type imageList struct {
	mu     sync.Mutex // guards both fields below
	images []corev1.ContainerImage
	readAt time.Time
}

// list reads the images if the last list is too old. If the runtime does not answer, it returns the earlier list.
func (l *imageList) list(ctx context.Context, images runtime.Images, log *zap.Logger) []corev1.ContainerImage {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.readAt.IsZero() && time.Since(l.readAt) < imagesFor {
		return l.images
	}
	found, err := images.ListImages(ctx)
	if err != nil {
		log.Debug("listing images for the node's status failed, trying again", zap.Error(err))
		return l.images
	}
	l.images, l.readAt = node.Images(found), time.Now()
	return l.images
}

// settle makes the node ready once nothing is left of Pods that the API had forgotten when the agent started.
func (a *agent) settle(ctx context.Context) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for !a.watcher.Complete() || a.pool.Orphans() > 0 {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
	a.settled.Store(true)
	a.node.Look()
}

// rotateEvery is how often logs are checked.
const rotateEvery = 10 * time.Second

// rotateLogs keeps the logs of running containers within their size.
func (a *agent) rotateLogs(ctx context.Context) {
	rotator := containerlog.Rotator{MaxSize: a.LogMaxSize, MaxFiles: a.LogMaxFiles, Reopen: a.runtime.ReopenLog}
	tick := time.NewTicker(rotateEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		var problems []error
		for _, c := range a.pool.Running() {
			log := containerlog.Log{Root: plainfile.Root(a.LogsDir), Path: a.files.ContainerLog(c.Pod, c.Name,
				c.Attempt)}
			problems = append(problems, rotator.Rotate(ctx, c.ID, log, time.Now()))
		}
		if err := errors.Join(problems...); err != nil && ctx.Err() == nil {
			a.Log.Warn("rotating logs failed in part", zap.Error(err))
		}
	}
}

// shareEvery is how often the shares of the classes of Pods are updated.
const shareEvery = 10 * time.Second

// shareAmongPods gives the classes of Pods what their Pods request together, now and whenever this changes.
func (a *agent) shareAmongPods(ctx context.Context) {
	tick := time.NewTicker(shareEvery)
	defer tick.Stop()
	limited := a.facts.PodLimits(a.Reserved.HoldsPods())
	for last, done := (cgroup.Shares{}), false; ; {
		if shares := a.cgroups.SharesOf(a.pool.Pods()); !done || shares != last {
			err := a.cgroups.Share(limited, shares)
			if err != nil {
				a.Log.Warn("sharing among the classes of Pods failed, trying again", zap.Error(err))
			}
			last, done = shares, err == nil
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// show adds the agent to the status address: health, queues and explanations.
func (a *agent) show() {
	a.Ready.Add("node", func() error {
		if !a.settled.Load() {
			return errors.New(problemUnsettled)
		}
		return nil
	})
	a.Live.Add("container-runtime", a.watcher.Healthy)
	a.State.AddQueue("status", func() (int, time.Duration) { return a.statuses.Len(), 0 })
	a.State.AddExplainer("Pod", a.explain)
	if a.podNetwork != nil {
		a.Ready.Add("pod-network", a.networkReady)
		a.State.AddExplainer("Node", a.explainNode)
	}
	a.registerMetrics()
}
