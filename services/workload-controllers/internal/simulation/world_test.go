package simulation

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// kind is one of those that a controller reads, each at its own pace.
type kind int

const (
	workloads kind = iota // the object whose template is rolled out
	replicaSets
	members // the Pods
	revisions
	claims
	nodes
	allKinds
)

// world is all that there is of a simulation and has been: a state S holds everything at one time. Objects and maps
// in a state are replaced, never changed.
type world[S any] struct {
	t       *testing.T
	random  *rand.Rand
	now     time.Time
	history []S
	// copied returns a state with maps of its own.
	copied func(S) S
	serial int
	// faulty lets writes fail and controllers end after one, stale lets them begin anew with an older view, chaos lets
	// Pods and nodes fail.
	faulty, stale, chaos bool
	// shown is what a failure shows of the present.
	shown fmt.Stringer
	log   []string
}

func newWorld[S any](t *testing.T, random *rand.Rand, first S, copied func(S) S) *world[S] {
	return &world[S]{t: t, random: random, now: time.Unix(1_700_000_000, 0), history: []S{first}, copied: copied}
}

var (
	errRefused = errors.New("refused")
	errEnded   = errors.New("the controller has ended")
)

func (w *world[S]) note(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf(format, args...))
}

func (w *world[S]) fail(format string, args ...any) {
	w.t.Helper()
	tail := w.log[max(0, len(w.log)-60):]
	w.t.Fatalf("%s\nnow: %s\nwhat happened last:\n%s", fmt.Sprintf(format, args...), w.shown, strings.Join(tail, "\n"))
}

// decided is what decide makes of its input, which must be the same a second time.
func decided[I, P any](fail func(format string, args ...any), decide func(I) P, in I) P {
	plan := decide(in)
	if again := decide(in); !reflect.DeepEqual(plan, again) {
		fail("two decisions over one input differ")
	}
	return plan
}

func (w *world[S]) last() S { return w.history[len(w.history)-1] }

// change makes the next state.
func (w *world[S]) change(edit func(*S)) {
	next := w.copied(w.last())
	edit(&next)
	w.history = append(w.history, next)
}

// next returns a number that no object has yet.
func (w *world[S]) next() int {
	w.serial++
	return w.serial
}

// process is a controller at work on its owners, the objects that it keeps. It sees each kind as it was a while ago;
// to an owner it comes back when it sees all that it wrote on its behalf. One that has begun anew has forgotten what
// that was.
type process[S any] struct {
	*world[S]
	name  string
	reads []kind
	seen  [allKinds]int // which state of each kind it sees
	// written is from which state on each kind shows all that was written on behalf of an owner.
	written map[types.UID]*[allKinds]int
	// forget drops what the process alone knows.
	forget func()
}

func newProcess[S any](w *world[S], name string, reads ...kind) *process[S] {
	return &process[S]{world: w, name: name, reads: reads, written: map[types.UID]*[allKinds]int{}, forget: func() {}}
}

// write is what the controller does on behalf of an owner. It may be refused, and the controller may end right after
// it.
func (p *process[S]) write(owner types.UID, k kind, what string, edit func(*S)) error {
	if p.faulty && p.random.IntN(20) == 0 {
		p.note("refused: %s", what)
		return errRefused
	}
	p.note("%s: %s", p.name, what)
	p.change(edit)
	p.await(owner, k)
	if p.faulty && p.random.IntN(20) == 0 {
		return errEnded
	}
	return nil
}

// await holds an owner back until the controller sees the kind as it is now.
func (p *process[S]) await(owner types.UID, k kind) {
	if p.written[owner] == nil {
		p.written[owner] = &[allKinds]int{}
	}
	p.written[owner][k] = len(p.history) - 1
}

// isOpen reports whether the controller sees all that it wrote on behalf of an owner.
func (p *process[S]) isOpen(owner types.UID) bool {
	if p.written[owner] == nil {
		return true
	}
	for _, k := range p.reads {
		if p.seen[k] < p.written[owner][k] {
			return false
		}
	}
	return true
}

// inBatches makes n objects in batches that double; a failure ends it with its batch, the end of the controller at
// once.
func (p *process[S]) inBatches(n int, create func(i int) error) error {
	var failed error
	for first, batch := 0, 1; first < n && failed == nil; first, batch = first+batch, 2*batch {
		for i := first; i < min(n, first+batch); i++ {
			err := create(i)
			if errors.Is(err, errEnded) {
				return err
			}
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

// begin starts the controller anew: it remembers nothing, and sees what its caches show.
func (p *process[S]) begin() {
	p.note("%s begins", p.name)
	clear(p.written)
	p.forget()
	p.lookAtAll()
	for _, k := range p.reads {
		if p.stale {
			p.seen[k] = max(0, p.seen[k]-p.random.IntN(30))
		}
	}
}

// look lets the controller see more.
func (p *process[S]) look() {
	k := p.reads[p.random.IntN(len(p.reads))]
	p.seen[k] += p.random.IntN(len(p.history) - p.seen[k])
}

func (p *process[S]) lookAtAll() {
	for _, k := range p.reads {
		p.seen[k] = len(p.history) - 1
	}
}

// at is a state that shows a kind as the controller sees it.
func (p *process[S]) at(k kind) S { return p.history[p.seen[k]] }
