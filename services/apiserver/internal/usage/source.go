package usage

import (
	"context"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"keelson.dev/kit/contained"
)

const (
	// between is the time between two readings of a node of which there was none.
	between = 2 * time.Second
	// askTime bounds one question to an agent, answerTime all the questions for one request: what has not come by then
	// is missing in the answer, and there for the next.
	askTime    = 5 * time.Second
	answerTime = 14 * time.Second
	// atOnce is how many agents are asked at a time.
	atOnce = 128
)

// Ask asks the agent of a node for a reading.
type Ask func(ctx context.Context, node string) (*Reading, error)

// Source asks the agents of the nodes that clients request, and remembers for a while what they said. Without requests
// it does nothing. It is safe for concurrent use.
type Source struct {
	ask   Ask
	slots chan struct{}

	mu    sync.Mutex // guards what follows
	nodes map[string]*node
	swept time.Time
}

// node is one node of a Source.
type node struct {
	known
	// asking is closed when the agent has been asked; nil while it is not being asked.
	asking chan struct{}
}

// NewSource makes a Source.
func NewSource(ask Ask) *Source {
	return &Source{ask: ask, slots: make(chan struct{}, atOnce), nodes: map[string]*node{}}
}

// Of returns the readings of the nodes. A node whose agent does not answer in time is missing.
func (s *Source) Of(ctx context.Context, names []string) map[string]Readings {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	for _, asked := range s.begin(names) {
		select {
		case <-asked:
		case <-ctx.Done():
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now, all := time.Now(), make(map[string]Readings, len(names))
	for _, name := range names {
		if n := s.nodes[name]; n != nil {
			if readings, ok := n.usable(now); ok {
				all[name] = readings
			}
		}
	}
	return all
}

// begin lets every agent be asked that is due, once however many want to know, and returns what to wait for.
func (s *Source) begin(names []string) []<-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.sweep(now)
	var asked []<-chan struct{}
	for _, name := range names {
		n := s.nodes[name]
		if n == nil {
			n = &node{}
			s.nodes[name] = n
		}
		n.wantedAt = now
		if n.asking == nil && n.due(now) {
			s.start(name, n)
		}
		if n.asking != nil {
			asked = append(asked, n.asking)
		}
	}
	return asked
}

// sweep forgets, now and then, the nodes that clients no longer request.
func (s *Source) sweep(now time.Time) {
	if now.Sub(s.swept) < forgotten {
		return
	}
	s.swept = now
	for name, n := range s.nodes {
		if n.asking == nil && n.idle(now) {
			delete(s.nodes, name)
		}
	}
}

// start begins to read a node. The lock is held.
func (s *Source) start(name string, n *node) {
	done := make(chan struct{})
	n.asking = done
	contained.Go("reading a node's usage", func() {
		defer s.end(n, done)
		s.read(name, n)
	}, nil)
}

func (s *Source) end(n *node, done chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n.asking = nil
	close(done)
}

// read asks the agent of a node, for as many readings as a rate needs. It belongs to no request: who asked first may
// leave, and others wait.
func (s *Source) read(name string, n *node) {
	for s.readOnce(name, n) {
		time.Sleep(between)
	}
}

func (s *Source) readOnce(name string, n *node) (again bool) {
	reading, err := s.askOnce(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		if !n.failed {
			klog.InfoS("A node's agent does not tell what the node uses", "node", name, "err", err)
		}
		n.miss(time.Now())
		return false
	}
	return n.take(reading, time.Now())
}

// askOnce asks the agent when fewer than atOnce are being asked. That it breaks off is no answer either.
func (s *Source) askOnce(name string) (reading *Reading, err error) {
	s.slots <- struct{}{}
	defer func() { <-s.slots }()
	ctx, cancel := context.WithTimeout(context.Background(), askTime)
	defer cancel()
	broken := contained.Do("asking a node's agent", func() { reading, err = s.ask(ctx, name) })
	if broken != nil {
		return nil, broken
	}
	return reading, err
}
