package controller

import (
	"errors"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"keelson.dev/kit/backoff"
)

// An apiserver that is older, newer or told to leave kinds out does not serve all that controllers watch. They wait for
// such kinds, for which controller-runtime looks every ten seconds, with an error each time. Nothing is wrong with
// that: it is said once, and then ever more rarely.
var repeats = backoff.Policy{First: 10 * time.Minute, Max: 24 * time.Hour}

// waitsForKinds is how long a controller waits for the kinds that it watches before it starts over.
const waitsForKinds = 24 * time.Hour

// unservedSink says of kinds that are not served that they are waited for, and hands on all else.
type unservedSink struct {
	logr.LogSink // which is initialised

	said *unservedKinds
}

// newUnservedLogger returns log, but that what it says of kinds that are not served is said rarely. Failed is told of
// it each time.
func newUnservedLogger(log logr.Logger, now func() time.Time, failed func(source string, err error)) logr.Logger {
	sink := log.GetSink()
	if deep, ok := sink.(logr.CallDepthLogSink); ok {
		sink = deep.WithCallDepth(1)
	}
	return logr.New(unservedSink{sink, &unservedKinds{now: now, failed: failed, said: map[schema.GroupKind]saying{}}})
}

// Init implements logr.LogSink.
func (unservedSink) Init(logr.RuntimeInfo) {}

// WithValues implements logr.LogSink.
func (s unservedSink) WithValues(values ...any) logr.LogSink {
	return unservedSink{s.LogSink.WithValues(values...), s.said}
}

// WithName implements logr.LogSink.
func (s unservedSink) WithName(name string) logr.LogSink {
	return unservedSink{s.LogSink.WithName(name), s.said}
}

// Info implements logr.LogSink.
func (s unservedSink) Info(level int, message string, values ...any) {
	s.LogSink.Info(level, message, values...)
}

// Error implements logr.LogSink.
func (s unservedSink) Error(err error, message string, values ...any) {
	unserved := &meta.NoKindMatchError{}
	if !errors.As(err, &unserved) {
		s.LogSink.Error(err, message, values...)
		return
	}
	s.said.failed("kind "+unserved.GroupKind.String(), unserved)
	if s.said.due(unserved.GroupKind) {
		s.LogSink.Info(0, "the apiserver does not serve a kind: what acts on its objects waits for it",
			"kind", unserved.GroupKind.String())
	}
}

// unservedKinds are those of which it was said.
type unservedKinds struct {
	now    func() time.Time
	failed func(source string, err error)

	mu   sync.Mutex // guards what follows
	said map[schema.GroupKind]saying
}

// saying is how often and when it was said of a kind.
type saying struct {
	times int
	last  time.Time
}

// due reports whether it is to be said of the kind now, and takes it as said.
func (u *unservedKinds) due(kind schema.GroupKind) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	s, now := u.said[kind], u.now()
	if s.times > 0 && now.Before(s.last.Add(repeats.Delay(s.times))) {
		return false
	}
	u.said[kind] = saying{s.times + 1, now}
	return true
}
