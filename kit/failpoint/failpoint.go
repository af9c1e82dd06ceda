// Package failpoint lets a test make a daemon fail at a named place: return an error, stall, or die there.
//
// A place is one call of Inject. With nothing armed it costs one atomic load. Places are armed by a program, for
// example
//
//	2*off->1*error(disk full)->crash
//
// whose terms are used up from left to right: twice nothing, once an error, then the process ends at once. The last
// term stays in force when it has no count, and the place is off when all counted terms are used up. A term hold(FILE)
// stalls for as long as the file exists, so that a test decides when the daemon goes on, however slow the machine is.
//
// Names are "<service>/<object>.<verb>.<before|after>", for example "scheduler/bind.before".
package failpoint

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// EnvVar arms places at process start: "name=program;name=program".
const EnvVar = "KEELSON_FAILPOINTS"

// ErrInjected is wrapped by every error that a failpoint returns.
var ErrInjected = errors.New("injected failure")

var (
	armed atomic.Pointer[map[string]*place]
	// mu serializes Arm and Disarm; readers go through armed alone.
	mu sync.Mutex
)

// Inject carries out the next term of the place's program. It returns nil unless that term is an error.
func Inject(name string) error {
	places := armed.Load()
	if places == nil {
		return nil
	}
	p := (*places)[name]
	if p == nil {
		return nil
	}
	return p.next().run(name)
}

// Around runs do between the places name+".before" and name+".after". An error of the first keeps do from running; one
// of the second stands for an answer that was lost on its way.
func Around(name string, do func() error) error {
	if err := Inject(name + ".before"); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	return Inject(name + ".after")
}

// Arm sets the program of one place and replaces an earlier one. A program that cannot be read is an error and changes
// nothing.
func Arm(name, program string) error {
	terms, err := parse(program)
	if err != nil {
		return fmt.Errorf("arming failpoint %q: %w", name, err)
	}
	edit(func(places map[string]*place) { places[name] = &place{terms: terms} })
	return nil
}

// Disarm switches a place off. It is no error when it was not armed.
func Disarm(name string) {
	edit(func(places map[string]*place) { delete(places, name) })
}

// ArmAll arms every place of a list as EnvVar holds it. An empty list arms nothing.
func ArmAll(list string) error {
	for item := range strings.SplitSeq(list, ";") {
		item = strings.TrimSpace(item)
		if item == "" {
			continue
		}
		name, program, ok := strings.Cut(item, "=")
		if !ok {
			return fmt.Errorf("arming failpoints: %q must have the form name=program", item)
		}
		if err := Arm(name, program); err != nil {
			return err
		}
	}
	return nil
}

// Armed returns the names of all armed places, sorted.
func Armed() []string {
	places := armed.Load()
	if places == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(*places))
}

func edit(change func(map[string]*place)) {
	mu.Lock()
	defer mu.Unlock()
	places := map[string]*place{}
	if old := armed.Load(); old != nil {
		maps.Copy(places, *old)
	}
	change(places)
	if len(places) == 0 {
		armed.Store(nil)
		return
	}
	armed.Store(&places)
}

// place is one armed failpoint; mu guards terms.
type place struct {
	mu    sync.Mutex
	terms []term
}

// next takes one use of the first term that is left.
func (p *place) next() term {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.terms) == 0 {
		return term{action: off}
	}
	t := p.terms[0]
	if t.count == forever {
		return t
	}
	p.terms[0].count--
	if p.terms[0].count == 0 {
		p.terms = p.terms[1:]
	}
	return t
}

// holdInterval is how soon a place goes on after the file is gone that held it.
const holdInterval = 10 * time.Millisecond

func exists(file string) bool {
	_, err := os.Lstat(file)
	return err == nil
}

func (t term) run(name string) error {
	switch t.action {
	case failing:
		return fmt.Errorf("%s: %w: %s", name, ErrInjected, t.text)
	case sleeping:
		time.Sleep(t.delay)
	case holding:
		for exists(t.text) {
			time.Sleep(holdInterval)
		}
	case crashing:
		// Past os.Stderr, which may be a pipe to a goroutine of this process.
		_, _ = syscall.Write(syscall.Stderr, fmt.Appendf(nil, "failpoint %s: crash\n", name))
		// SIGKILL, not os.Exit: nothing deferred, flushed or released may run.
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
	return nil
}
