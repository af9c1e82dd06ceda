// Package contained runs work whose panic ends the work alone, not the process. What is on the way of a request starts
// its goroutines here: the recover that a server has around a handler does not reach those that the handler starts.
package contained

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/klog/v2"
)

var panics = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "keelson_contained_panics_total",
	Help: "Panics that ended a piece of work and not the process, by what the work was. Each is a defect.",
}, []string{"work"})

// Metrics count the panics that this process has contained.
func Metrics() []prometheus.Collector { return []prometheus.Collector{panics} }

// Do does the work. Its panic is logged with the stack, counted, and returned as an error "NAME broke off: REASON".
// There are few names: each is a value of a metric's label.
func Do(name string, work func()) (broken error) {
	defer func() {
		if p := recover(); p != nil {
			broken = fmt.Errorf("%s broke off: %v", name, p)
			panics.WithLabelValues(name).Inc()
			klog.ErrorS(broken, "A panic was contained", "stack", string(debug.Stack()))
		}
	}()
	work()
	return nil
}

// Go does the work in a goroutine of its own. If it panics, that goroutine calls broken with the error of Do; a caller
// that waits for the work must hear of it there, or by what the work defers. If no caller waits, broken is nil.
func Go(name string, work func(), broken func(error)) {
	go run(name, work, broken)
}

// After does the work as time.AfterFunc does, and reports its panic as Go does.
func After(wait time.Duration, name string, work func(), broken func(error)) *time.Timer {
	return time.AfterFunc(wait, func() { run(name, work, broken) })
}

// AtEnd does the work as context.AfterFunc does, and reports its panic as Go does.
func AtEnd(ctx context.Context, name string, work func(), broken func(error)) (stop func() bool) {
	return context.AfterFunc(ctx, func() { run(name, work, broken) })
}

// Group is goroutines that can be waited for. The zero value is ready.
type Group struct{ running sync.WaitGroup }

// Go is the function of this name, for work that Wait waits for.
func (g *Group) Go(name string, work func(), broken func(error)) {
	g.running.Add(1)
	go func() {
		defer g.running.Done()
		run(name, work, broken)
	}()
}

// Wait returns when all work has ended, and broken has been called where it is due.
func (g *Group) Wait() { g.running.Wait() }

// run contains panics of the report as well.
func run(name string, work func(), broken func(error)) {
	if err := Do(name, work); err != nil && broken != nil {
		_ = Do(name, func() { broken(err) })
	}
}
