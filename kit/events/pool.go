package events

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record/util"
	"k8s.io/client-go/tools/reference"
	"k8s.io/klog/v2"

	"keelson.dev/kit/wakeup"
)

const (
	// waiting is how many Events may wait to be written. What comes beyond is dropped.
	waiting = 10_000
	// together is the least time from one round to the next: what comes meanwhile goes into one request.
	together = 100 * time.Millisecond
	// tries is how often a round is sent while the apiserver cannot take it, which are about two minutes.
	tries = 12
	// longestPause is how long a round waits at most for the next try.
	longestPause = 10 * time.Second
	// drain is how long the end of a process waits for its last Events.
	drain = 2 * time.Second
)

// Pool writes the Events of a process's recorders in the background, those about one object in order. The first goes at
// once; what comes while it is on its way goes together. Losing one is no error: Events are hints, never state.
type Pool struct {
	sink       *sink
	correlator *correlator
	// held is what did not fit into the last round.
	held *write

	ctx            context.Context
	cancel         context.CancelFunc
	wake           wakeup.Signal
	stopping, done chan struct{}

	mu      sync.Mutex // guards what follows
	queue   []*corev1.Event
	stopped bool
	// last is the time by which the latest Event is named.
	last int64
}

// NewPool starts writing. Stop it at the end.
func NewPool(config *rest.Config) (*Pool, error) {
	client, err := typedcorev1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("building the events client: %w", err)
	}
	p := &Pool{
		sink: &sink{events: client.Events(""), rest: client.RESTClient()}, correlator: newCorrelator(),
		wake: wakeup.New(), stopping: make(chan struct{}), done: make(chan struct{}),
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	go p.run()
	return p, nil
}

// Recorder returns a recorder whose Events name component as their source, and host if the component runs per node. The
// scheme must know the objects that are recorded.
func (p *Pool) Recorder(scheme *runtime.Scheme, component, host string) *Recorder {
	return &Recorder{pool: p, scheme: scheme, source: corev1.EventSource{Component: component, Host: host}}
}

// Stop writes what waits, for two seconds at most, and drops the rest.
func (p *Pool) Stop() {
	p.mu.Lock()
	if !p.stopped {
		p.stopped = true
		close(p.stopping)
	}
	p.mu.Unlock()
	late := time.AfterFunc(drain, p.cancel)
	defer late.Stop()
	<-p.done
	p.cancel()
}

// Recorder writes Events in the name of one source.
type Recorder struct {
	pool   *Pool
	scheme *runtime.Scheme
	source corev1.EventSource
}

// Record writes the Event about the object; a *corev1.ObjectReference will do. It never waits: what a full queue cannot
// take is dropped.
func (r *Recorder) Record(object runtime.Object, e Event) {
	about, err := reference.GetReference(r.scheme, object)
	if err != nil {
		klog.Background().Error(err, "Recording an Event about an unknown object", "reason", e.Reason)
		return
	}
	now := metav1.Now()
	r.pool.put(&corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: namespaceOf(about)},
		InvolvedObject: *about,
		Type:           e.Type, Reason: e.Reason, Message: e.Message, Count: 1,
		FirstTimestamp: now, LastTimestamp: now,
		Source: r.source, ReportingController: r.source.Component, ReportingInstance: r.source.Host,
	})
}

// namespaceOf is where an Event stands: those about objects of the cluster stand in default.
func namespaceOf(about *corev1.ObjectReference) string {
	if about.Namespace == "" {
		return metav1.NamespaceDefault
	}
	return about.Namespace
}

// put lets the Event wait, under a name of its own: it is written once, however often it is sent.
func (p *Pool) put(e *corev1.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped || len(p.queue) >= waiting {
		dropped.WithLabelValues(overflow).Inc()
		return
	}
	p.last = max(p.last+1, e.LastTimestamp.UnixNano())
	e.Name = util.GenerateEventName(e.InvolvedObject.Name, p.last)
	p.queue = append(p.queue, e)
	p.wake.Send()
}

// take returns the Event that has waited longest; nil if none waits.
func (p *Pool) take() *corev1.Event {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.queue) == 0 {
		p.queue = nil
		return nil
	}
	e := p.queue[0]
	p.queue[0], p.queue = nil, p.queue[1:]
	return e
}

// run writes round by round, and ends when nothing waits after Stop.
func (p *Pool) run() {
	defer close(p.done)
	for {
		select {
		case <-p.wake:
		case <-p.stopping:
		}
		ending := p.ending()
		for r := p.next(); !r.empty(); r = p.next() {
			next := time.Now().Add(together)
			p.write(r)
			p.pause(time.Until(next))
		}
		if ending {
			return
		}
	}
}

// next is what of the waiting Events goes together.
func (p *Pool) next() round {
	var r round
	if p.held != nil {
		r.add(*p.held)
		p.held = nil
	}
	for !r.full() {
		e := p.take()
		if e == nil {
			break
		}
		w, needed := p.correlator.correlate(e)
		if !needed {
			dropped.WithLabelValues(flood).Inc()
			continue
		}
		if !r.add(w) {
			p.held = &w
			break
		}
	}
	return r
}

// write sends the round until the apiserver has taken or refused all of it.
func (p *Pool) write(r round) {
	for try := 1; ; try++ {
		if r = p.sink.send(p.ctx, r); r.empty() {
			return
		}
		if try == tries || p.ending() {
			dropped.WithLabelValues(unreachable).Add(float64(len(r.creates) + len(r.patches)))
			return
		}
		pause := min(time.Second<<(try-1), longestPause)
		p.pause(pause/2 + rand.N(pause/2))
	}
}

// pause waits, but not beyond the end.
func (p *Pool) pause(d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.stopping:
	}
}

func (p *Pool) ending() bool {
	select {
	case <-p.stopping:
		return true
	default:
		return false
	}
}
