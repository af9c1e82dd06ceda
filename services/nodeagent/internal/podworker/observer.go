package podworker

import (
	"time"

	"keelson.dev/services/nodeagent/internal/lifecycle"
	"keelson.dev/services/nodeagent/internal/observed"
	"keelson.dev/services/nodeagent/internal/podstate"
)

// Observer is told what workers do, for whoever counts it. Its methods do not block, and many goroutines call them at
// once.
type Observer interface {
	// Taken is told, once for each Pod that is new to the node, how long it waited for its worker.
	Taken(waited time.Duration)
	// Running is told, once for each Pod that is new to the node, how long it took from its arrival until it ran. Of
	// one that never does it is not told.
	Running(took time.Duration)
	// Synced is told how long a worker took from the pass that found something to do until nothing was under way.
	Synced(kind Sync, took time.Duration)
	// SandboxStarted is told of each sandbox that was tried to be started, err says why it was not.
	SandboxStarted(err error)
	// ContainerStarted is told of each instance that was tried to be started. reason says why it was not, in the word
	// that the status of its container has; empty if it runs.
	ContainerStarted(kind lifecycle.Kind, reason string)
	// Ended is told once of each instance that has exited.
	Ended(kind lifecycle.Kind, c *observed.Container)
}

// Sync is why a worker has something to do.
type Sync string

// The kinds of syncs: a Pod that is new to the node, one that changed, one that is ended, and anything else that comes
// to pass, such as a container that has exited or a volume that is brought up to date.
const (
	SyncCreate Sync = "create"
	SyncUpdate Sync = "update"
	SyncKill   Sync = "kill"
	SyncSync   Sync = "sync"
)

// syncing is a sync under way; began is zero while there is none.
type syncing struct {
	kind  Sync
	began time.Time
}

// decideSync says why a worker has something to do: fresh Pods are new to the node and have not been worked on yet,
// seen is the generation that was worked on last.
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

// noteSync takes the end of a pass that began at a time into the sync that it is part of, and tells of one that is
// over. The end of a Pod is a sync of its own, whatever was under way.
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
