// Package runtimewatch watches the container runtime and wakes the workers of the Pods that changed: by the
// runtime's event stream, and by listing everything periodically, because events may be lost. It also finds what no
// worker knows: containers, cgroups and folders of Pods that the API has forgotten.
package runtimewatch

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/nodeagent/internal/observed"
	"keelson.dev/services/nodeagent/internal/runtime"
)

// How often everything is listed: while events come, and while they do not.
const (
	relistEvery   = 10 * time.Second
	relistBlindly = time.Second
)

// Workers is notified of changes.
type Workers interface {
	// Wake returns false if no worker knows the Pod.
	Wake(uid types.UID) bool
	// Listed gets everything that the runtime has.
	Listed(pods []observed.Pod)
	// Knows reports whether the Pod has a worker or was deleted just now.
	Knows(uid types.UID) bool
	// Adopt brings down a Pod that only the node knows.
	Adopt(uid types.UID, namespace, name string)
}

// Config is what a Watcher needs.
type Config struct {
	Runtime runtime.Pods
	Workers Workers
	Log     *zap.Logger
	// Relisted is called after each list of everything, with when that began; ok means that the runtime answered.
	Relisted func(began time.Time, ok bool)
	// Changed is called when the runtime begins or ceases to answer.
	Changed func()
	// Leftovers returns the Pods that have anything else on the node: folders, cgroups, records.
	Leftovers func() ([]types.UID, error)
}

// Watcher watches one runtime.
type Watcher struct {
	Config
	// streaming means that events come.
	streaming atomic.Bool
	// listed is when the last list succeeded, in nanoseconds since 1970.
	listed atomic.Int64
	prints map[types.UID]string
	// settled is closed when the workers know all Pods; complete means that everything was listed since.
	settled  chan struct{}
	complete atomic.Bool
}

// New returns a Watcher that does nothing yet.
func New(config Config) *Watcher {
	return &Watcher{Config: config, prints: map[types.UID]string{}, settled: make(chan struct{})}
}

// Settle notes, once, that the workers know all Pods of the node: unknown Pods count as forgotten.
func (w *Watcher) Settle() { close(w.settled) }

// Run watches until ctx ends.
func (w *Watcher) Run(ctx context.Context) {
	go w.stream(ctx)
	settled, ends := w.settled, false
	for answers := false; ; {
		began := time.Now()
		err := w.relist(ctx, ends)
		if ctx.Err() != nil {
			return
		}
		w.Relisted(began, err == nil)
		if err != nil {
			w.Log.Warn("listing the runtime's Pods failed, trying again", zap.Error(err))
		}
		if answered := err == nil; answered != answers {
			answers = answered
			w.Changed()
		}
		pause := relistEvery
		if !w.streaming.Load() {
			pause = relistBlindly
		}
		select {
		case <-ctx.Done():
			return
		case <-settled:
			settled, ends = nil, true
			w.sweep()
		case <-time.After(pause):
		}
	}
}

// Complete reports whether everything was listed since the workers know all Pods, so that all forgotten ones are
// found.
func (w *Watcher) Complete() bool { return w.complete.Load() }

// Healthy returns an error if the runtime has not answered for a while.
func (w *Watcher) Healthy() error {
	if at := w.listed.Load(); at != 0 && time.Since(time.Unix(0, at)) > 3*time.Minute {
		return fmt.Errorf("the container runtime has not answered since %s",
			time.Unix(0, at).UTC().Format(time.RFC3339))
	}
	return nil
}

// stream passes on events and reopens the stream whenever it breaks.
func (w *Watcher) stream(ctx context.Context) {
	for ctx.Err() == nil {
		began := time.Now()
		w.streaming.Store(true)
		err := w.Runtime.Watch(ctx, func(e runtime.Event) { w.Workers.Wake(types.UID(e.PodUID)) })
		w.streaming.Store(false)
		if ctx.Err() != nil {
			return
		}
		w.Log.Warn("the runtime's event stream ended, listing every second until it is back", zap.Error(err))
		select {
		case <-ctx.Done():
		case <-time.After(max(0, time.Second-time.Since(began))):
		}
	}
}

// relist compares everything with the last list and wakes the workers of Pods that differ. If ends is set, Pods
// that no worker knows are ended.
func (w *Watcher) relist(ctx context.Context, ends bool) error {
	pods, err := w.Runtime.ListPods(ctx)
	if err != nil {
		return err
	}
	w.Workers.Listed(pods)
	prints := make(map[types.UID]string, len(pods))
	for i := range pods {
		uid := types.UID(pods[i].UID)
		prints[uid] = fingerprint(&pods[i])
		if known := w.Workers.Knows(uid); !known && ends {
			w.Log.Info("the API has no such Pod, ending it", zap.String("namespace", pods[i].Namespace),
				zap.String("pod", pods[i].Name), zap.String("uid", pods[i].UID))
			w.Workers.Adopt(uid, pods[i].Namespace, pods[i].Name)
		} else if known && prints[uid] != w.prints[uid] {
			w.Workers.Wake(uid)
		}
	}
	for uid := range w.prints {
		if _, there := prints[uid]; !there {
			w.Workers.Wake(uid)
		}
	}
	w.prints = prints
	w.listed.Store(time.Now().UnixNano())
	if ends {
		w.complete.Store(true)
	}
	return nil
}

// sweep finds, once at the start, Pods that have left something other than containers.
func (w *Watcher) sweep() {
	uids, err := w.Leftovers()
	if err != nil {
		w.Log.Warn("looking for what earlier Pods have left failed", zap.Error(err))
	}
	for _, uid := range uids {
		if !w.Workers.Knows(uid) {
			w.Workers.Adopt(uid, "", "")
		}
	}
}

// fingerprint returns a text that changes with every change that a worker must see.
func fingerprint(p *observed.Pod) string {
	var b strings.Builder
	for i := range p.Sandboxes {
		fmt.Fprintf(&b, "%s=%v ", p.Sandboxes[i].ID, p.Sandboxes[i].Ready)
	}
	for i := range p.Containers {
		fmt.Fprintf(&b, "%s=%s ", p.Containers[i].ID, p.Containers[i].State)
	}
	return b.String()
}
