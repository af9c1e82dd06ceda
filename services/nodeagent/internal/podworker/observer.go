package podworker

import (
	"time"

	"keelson.dev/services/nodeagent/internal/lifecycle"
	"keelson.dev/services/nodeagent/internal/observed"
	"keelson.dev/services/nodeagent/internal/podstate"
)

// Observer is told what workers do, for metrics. Its methods must not block; many goroutines call them at once.
type Observer interface {
	// Taken is called once for each Pod that is new to the node, with the time that it waited for its worker.
	Taken(waited time.Duration)
	// Running is called once for each Pod that is new to the node and runs, with the time from its arrival until then.
	Running(took time.Duration)
	// Synced is called with the time from the pass that found something to do until no operation was under way.
	Synced(kind Sync, took time.Duration)
	// SandboxStarted is called for each attempt to start a sandbox; err is its error.
	SandboxStarted(err error)
	// ContainerStarted is called for each attempt to start an instance. reason is the waiting reason that the
	// container's status gets for a failure; empty if the instance runs.
	ContainerStarted(kind lifecycle.Kind, reason string)
	// Ended is called once for each instance that has exited.
	Ended(kind lifecycle.Kind, c *observed.Container)
}

// Sync is why a worker has something to do.
type Sync string

// The kinds of syncs: for a Pod that is new to the node, one that changed, one that is ended, and any other event,
// such as a container that has exited or a volume that is refreshed.
const (
	SyncCreate Sync = "create"
	SyncUpdate Sync = "update"
	SyncKill   Sync = "kill"
	SyncSync   Sync = "sync"
)

// syncing is a sync under way; began is zero while none is.
type syncing struct {
	kind  Sync
	began time.Time
}

// decideSync returns why a worker has something to do. fresh means that the Pod is new to the node and that nothing
// was started for it yet; seen is the generation of the last sync.
func decideSync(goal podstate.Goal, fresh bool, generation, seen int64) Sync {
	switch {
	case goal != podstate.Run:
		return SyncKill
	case fresh:
		return SyncCreate
	case generation != seen:
		return SyncUpdate
	}
	return SyncSync
}

// noteSync adds a pass that began at that time to the current sync, and reports a sync that is over. Ending a Pod
// is a sync of its own, even if another one was under way.
func (w *worker) noteSync(began, now time.Time, goal podstate.Goal) {
	underWay := !w.syncing.began.IsZero()
	if underWay && (len(w.ops) == 0 || goal != podstate.Run && w.syncing.kind != SyncKill) {
		w.config.Observer.Synced(w.syncing.kind, now.Sub(w.syncing.began))
		w.syncing, underWay = syncing{}, false
	}
	if !underWay && len(w.ops) > 0 {
		w.syncing = syncing{decideSync(goal, w.fresh, w.pod.Generation, w.generation), began}
		w.fresh, w.generation = false, w.pod.Generation
	}
}
