// Package observe watches the container runtime and wakes the workers of the Pods that changed: by the runtime's event
// stream, and by listing everything from time to time, because events may be lost. It also finds what no worker knows:
// containers, cgroups and folders of Pods that the API has forgotten.
package observe

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

// Workers is who is told.
type Workers interface {
	// Wake returns false if no worker knows the Pod.
	Wake(uid types.UID) bool
	// Knows tells whether the Pod has a worker or was deleted just now.
	Knows(uid types.UID) bool
	// Adopt brings a Pod down that only the node knows.
	Adopt(uid types.UID, namespace, name string)
}

// Config is what an Observer works with.
type Config struct {
	Runtime runtime.Pods
	Workers Workers
	Log     *zap.Logger
	// Changed is called when the runtime begins to answer or ceases to.
	Changed func()
	// Leftovers returns the Pods of which the node has anything else: folders, cgroups, records.
	Leftovers func() ([]types.UID, error)
}

// Observer watches one runtime.
type Observer struct {
	Config
	// streaming says that events come.
	streaming atomic.Bool
	// listed is when the last list succeeded, in nanoseconds since 1970.
	listed atomic.Int64
	prints map[types.UID]string
}

// New returns an Observer that does nothing yet.
func New(config Config) *Observer {
	return &Observer{Config: config, prints: map[types.UID]string{}}
}

// Run observes until ctx ends. Call it when the workers know all Pods that the API has: what they do not know then is
// taken for forgotten.
func (o *Observer) Run(ctx context.Context) {
	go o.stream(ctx)
	o.sweep()
	for answers := false; ; {
		err := o.relist(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			o.Log.Warn("listing the runtime's Pods failed, trying again", zap.Error(err))
		}
		if answered := err == nil; answered != answers {
			answers = answered
			o.Changed()
		}
		pause := relistEvery
		if !o.streaming.Load() {
			pause = relistBlindly
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// Listed tells whether everything was listed at least once, so that all forgotten Pods were found.
func (o *Observer) Listed() bool { return o.listed.Load() != 0 }

// Healthy says what is wrong if the runtime has not answered for a while.
func (o *Observer) Healthy() error {
	if at := o.listed.Load(); at != 0 && time.Since(time.Unix(0, at)) > 3*time.Minute {
		return fmt.Errorf("the container runtime has not answered since %s",
			time.Unix(0, at).UTC().Format(time.RFC3339))
	}
	return nil
}

// stream passes events on and opens the stream again whenever it breaks.
func (o *Observer) stream(ctx context.Context) {
	for ctx.Err() == nil {
		began := time.Now()
		o.streaming.Store(true)
		err := o.Runtime.Watch(ctx, func(e runtime.Event) { o.Workers.Wake(types.UID(e.PodUID)) })
		o.streaming.Store(false)
		if ctx.Err() != nil {
			return
		}
		o.Log.Warn("the runtime's event stream ended, listing every second until it is back", zap.Error(err))
		select {
		case <-ctx.Done():
		case <-time.After(max(0, time.Second-time.Since(began))):
		}
	}
}

// relist compares everything with the last time and wakes the workers of Pods that differ.
func (o *Observer) relist(ctx context.Context) error {
	pods, err := o.Runtime.ListPods(ctx)
	if err != nil {
		return err
	}
	prints := make(map[types.UID]string, len(pods))
	for i := range pods {
		uid := types.UID(pods[i].UID)
		prints[uid] = fingerprint(&pods[i])
		if !o.Workers.Knows(uid) {
			o.Log.Info("the API has no such Pod, ending it", zap.String("namespace", pods[i].Namespace),
				zap.String("pod", pods[i].Name), zap.String("uid", pods[i].UID))
			o.Workers.Adopt(uid, pods[i].Namespace, pods[i].Name)
		} else if prints[uid] != o.prints[uid] {
			o.Workers.Wake(uid)
		}
	}
	for uid := range o.prints {
		if _, there := prints[uid]; !there {
			o.Workers.Wake(uid)
		}
	}
	o.prints = prints
	o.listed.Store(time.Now().UnixNano())
	return nil
}

// sweep finds, once at the start, Pods that have left something else than containers.
func (o *Observer) sweep() {
	uids, err := o.Leftovers()
	if err != nil {
		o.Log.Warn("looking for what earlier Pods have left failed", zap.Error(err))
	}
	for _, uid := range uids {
		if !o.Workers.Knows(uid) {
			o.Workers.Adopt(uid, "", "")
		}
	}
}

// fingerprint changes with every change that a worker must see.
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
