// Package introspect collects what a daemon knows about itself and serves it as
// keelson.introspection.v1.IntrospectionService.
package introspect

import (
	"context"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	introspectionv1 "keelson.dev/proto/keelson/introspection/v1"
)

// Explainer answers why one object is as it is, from the daemon's memory. It returns false where the daemon knows
// nothing of the object, and must not block.
type Explainer func(ctx context.Context, namespace, name string) (Explanation, bool)

// Explanation is an answer in the user's terms.
type Explanation struct {
	// Summary is one sentence.
	Summary string
	// Facts led there, oldest first.
	Facts []Fact
}

// Fact is one thing that was seen or decided.
type Fact struct {
	Time    time.Time // zero where it holds at no one moment
	Reason  string    // CamelCase, as in Events.
	Message string
}

// Depth returns how many entries wait in a queue and how long the oldest has waited; 0 where that is not known.
type Depth func() (entries int, oldest time.Duration)

// State is a daemon's picture of itself. All methods are safe for concurrent use.
type State struct {
	daemon, version string
	started         time.Time

	mu         sync.Mutex // guards the maps
	roles      map[string]*introspectionv1.Role
	queues     map[string]Depth
	errors     map[string]*failure
	explainers map[string]Explainer
}

type failure struct {
	message string
	at      time.Time
	count   int64
}

// NewState returns the picture of a daemon that starts now.
func NewState(daemon, version string) *State {
	return &State{
		daemon: daemon, version: version, started: time.Now(),
		roles: map[string]*introspectionv1.Role{}, queues: map[string]Depth{},
		errors: map[string]*failure{}, explainers: map[string]Explainer{},
	}
}

// AddQueue shows a work queue under the name.
func (s *State) AddQueue(name string, depth Depth) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queues[name] = depth
}

// AddExplainer answers Explain for objects of the kind, for example "Pod".
func (s *State) AddExplainer(kind string, explain Explainer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.explainers[strings.ToLower(kind)] = explain
}

// Failed records the newest error of a source, for example of a controller.
func (s *State) Failed(source string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.errors[source]
	if f == nil {
		f = &failure{}
		s.errors[source] = f
	}
	f.message, f.at = err.Error(), time.Now()
	f.count++
}

// explainer returns nil where no object of the kind can be explained, with the kinds that can, sorted.
func (s *State) explainer(kind string) (Explainer, []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kinds := make([]string, 0, len(s.explainers))
	for known := range s.explainers {
		kinds = append(kinds, known)
	}
	slices.Sort(kinds)
	return s.explainers[strings.ToLower(kind)], kinds
}

// processID is what `keel status` compares with its own record.
func processID() int32 { return int32(os.Getpid()) }
