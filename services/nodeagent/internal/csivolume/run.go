package csivolume

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"keelson.dev/kit/backoff"
	"keelson.dev/kit/failpoint"
)

// again is the back-off between attempts to have a driver undo something, the same as the kubelet's.
var again = backoff.Policy{First: 500 * time.Millisecond, Max: 2*time.Minute + 2*time.Second}

// attempt counts the failures of one task. Only the runner uses it.
type attempt struct {
	running  bool
	failures int
	nextAt   time.Time
}

// work is a task: it undoes one thing, or compares one volume with the API.
type work func(context.Context) error

// result is the end of an attempt.
type result struct {
	task string
	err  error
}

// Run unstages the volumes that no Pod uses any more, unpublishes those that Pods have left, and grows those that have
// grown in the storage, until ctx ends. Each runs separately: a driver that hangs delays only its own volumes.
func (v *Volumes) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	results := make(chan result)
	attempts := map[string]*attempt{}
	for {
		wake := v.start(attempts, func(task string, do work) {
			running.Go(func() {
				select {
				case results <- result{task, do(ctx)}:
				case <-ctx.Done():
				}
			})
		})
		select {
		case <-ctx.Done():
			return
		case <-v.due:
		case <-wake:
		case r := <-results:
			v.conclude(attempts[r.task], r)
		}
	}
}

// start begins what is due, forgets what need not be done any more, and returns a channel for the next due time.
func (v *Volumes) start(attempts map[string]*attempt, begin func(string, work)) <-chan time.Time {
	tasks := v.tasks()
	maps.DeleteFunc(attempts, func(task string, a *attempt) bool { return tasks[task] == nil && !a.running })
	var soonest time.Duration = -1
	for _, task := range slices.Sorted(maps.Keys(tasks)) {
		a := attempts[task]
		if a == nil {
			a = &attempt{}
			attempts[task] = a
		}
		switch wait := a.nextAt.Sub(v.Now()); {
		case a.running:
		case wait <= 0:
			a.running = true
			begin(task, tasks[task])
		case soonest < 0 || wait < soonest:
			soonest = wait
		}
	}
	if soonest < 0 {
		return nil
	}
	return time.After(soonest)
}

func (v *Volumes) conclude(a *attempt, r result) {
	a.running = false
	if r.err == nil {
		a.failures, a.nextAt = 0, time.Time{}
		return
	}
	a.failures++
	delay := again.Delay(a.failures)
	a.nextAt = v.Now().Add(delay)
	v.Log.Warn("work on a CSI volume failed, trying again", zap.String("task", r.task),
		zap.Duration("in", delay), zap.Error(r.err))
}

// tasks returns what is to be done now, by a name for each.
func (v *Volumes) tasks() map[string]work {
	v.mu.Lock()
	defer v.mu.Unlock()
	out := map[string]work{}
	for _, at := range v.wishes.places() {
		out["compare "+at.name+" of pod "+string(at.pod)] = func(ctx context.Context) error {
			return v.compare(ctx, at)
		}
	}
	for file, r := range v.left {
		out["unpublish "+r.Name+" of pod "+string(r.Pod)] = func(ctx context.Context) error {
			return v.catchUp(ctx, file, r)
		}
	}
	for id := range v.staged {
		if len(v.damaged) == 0 && len(v.usersLocked(id)) == 0 {
			out["unstage "+id.handle+" of driver "+id.driver] = func(ctx context.Context) error {
				return v.unstage(ctx, id)
			}
		}
	}
	return out
}

// catchUp unpublishes what a Pod has left.
func (v *Volumes) catchUp(ctx context.Context, file string, r record) error {
	unlock, err := v.locks.lock(ctx, r.id())
	if err != nil {
		return err
	}
	defer unlock()
	target := v.published(place{r.Pod, r.Name}, r.Block)
	if err := v.unpublish(ctx, r, target); err != nil {
		return err
	}
	v.clear(target, r)
	defer v.lookForDue()
	return v.settle(file)
}

// unstage has the driver unstage a volume, unless a Pod has begun to use it.
func (v *Volumes) unstage(ctx context.Context, id volumeID) error {
	unlock, err := v.locks.lock(ctx, id)
	if err != nil {
		return err
	}
	defer unlock()
	if len(v.users(id)) > 0 {
		return nil
	}
	driver, err := v.Driver(id.driver)
	if err != nil {
		return err
	}
	staging := v.staging(id)
	err = failpoint.Around("nodeagent/csi.unstage", func() error { return driver.Unstage(ctx, id.handle, staging) })
	if err != nil {
		return err
	}
	if left, err := v.Mounter.Under(staging); err != nil || len(left) > 0 {
		return errors.Join(err, fmt.Errorf("CSI driver %s says that a volume is unstaged: %d mounts are left at %s",
			id.driver, len(left), staging))
	}
	return v.dropStaged(id)
}
