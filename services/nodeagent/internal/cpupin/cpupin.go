// Package cpupin gives containers processors of their own, under policy static: those of Guaranteed Pods that request
// whole ones. All others share the rest, from which what is reserved is never taken away.
//
// Which processors a Pod gets is chosen when the node takes the Pod in, is on disk before a container of it is made,
// and holds until all containers of the Pod have ended, whatever dies meanwhile. Where memory and devices lie (NUMA) is
// not looked at.
//
//	decide.go        which processors for whom
//	decide_state.go  what the file on disk says, and whether it fits the machine
//	cpupin.go        the state of the node
//	follow.go        the runtime is told of what changes for containers that run
//	topology.go      how the processors of the machine lie together
package cpupin

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/cpuset"

	"keelson.dev/kit/failpoint"
	"keelson.dev/kit/wakeup"
	"keelson.dev/services/nodeagent/internal/lifecycle"
	"keelson.dev/services/nodeagent/internal/podstate"
	"keelson.dev/services/nodeagent/internal/wholefile"
)

// fileName is that of the state, in the agent's own folder; the field's tools look for it.
const fileName = "cpu_manager_state"

// Config is what Pins work with.
type Config struct {
	Settings
	// Root is the agent's own folder.
	Root string
	Log  *zap.Logger
	// Machine is read under policy static only. Named are the reserved processors if they are named, else there are
	// as many as ReservedMilli, in thousandths, takes.
	Machine       func() (Machine, error)
	Named         cpuset.CPUSet
	ReservedMilli int64
	// Running returns the instances that run; Update tells the runtime about one.
	Running func() []Running
	Update  Updater
	// Refuse ends a Pod that was taken in and cannot have its processors. It may not block.
	Refuse func(uid types.UID, why podstate.Outcome)
}

// Pins are the processors of one node and who has them. Methods may be called at once, those about one Pod one after
// the other. Under policy none they do nothing.
type Pins struct {
	Config
	machine  Machine
	reserved cpuset.CPUSet
	changed  wakeup.Signal // Run has something to compare

	writing sync.Mutex // held around each write of the file; taken before mu
	mu      sync.Mutex // guards pods
	pods    map[types.UID]holding
}

// holding is the processors of a Pod.
type holding struct {
	Assignment
	// saved says that they are on disk for sure, touched that they may be.
	saved, touched bool
	// stopped says that no process of the Pod is left: they are free, though they may be on disk.
	stopped bool
}

// Open returns the processors of a node as an earlier agent left them. What is on disk and cannot be followed is an
// error that says what to do.
func Open(config Config) (*Pins, error) {
	p := &Pins{Config: config, changed: wakeup.New(), pods: map[types.UID]holding{}}
	var err error
	if p.IsStatic() {
		if p.machine, err = p.Machine(); err != nil {
			return nil, err
		}
		if p.reserved, err = reserve(p.machine, p.Named, p.ReservedMilli); err != nil {
			return nil, err
		}
	}
	if err := wholefile.Clear(p.Root, fileName); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(p.file())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return p, nil
	case err != nil:
		return nil, fmt.Errorf("reading who has which cpus: %w", err)
	}
	if err := p.restore(data); err != nil {
		return nil, fmt.Errorf("--cpu-manager-policy: %s cannot be followed: %w; drain the node, remove that file and "+
			"start again", p.file(), err)
	}
	return p, nil
}

func (p *Pins) file() string { return filepath.Join(p.Root, fileName) }

// restore takes over what the file says. Policy none takes over a file by which nobody has anything: it goes.
func (p *Pins) restore(data []byte) error {
	kept, err := decode(data)
	switch {
	case err != nil:
		return err
	case !p.IsStatic() && len(kept.Pods) > 0:
		return fmt.Errorf("%d Pods have cpus of their own by it, under policy %s", len(kept.Pods), Static)
	case !p.IsStatic():
		return os.Remove(p.file())
	}
	if err := kept.check(p.machine, p.reserved); err != nil {
		return err
	}
	for uid, own := range kept.Pods {
		p.pods[uid] = holding{Assignment: own, saved: true, touched: true}
	}
	return nil
}

// Admit gives a Pod processors, or returns why it cannot have them. Nothing is written yet.
func (p *Pins) Admit(pod *corev1.Pod) *podstate.Outcome {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.chooseLocked(pod); err != nil {
		why := podstate.Unallocated(err)
		return &why
	}
	return nil
}

// SetUp has what a Pod was given on disk when it returns. A Pod that cannot have its processors is ended.
func (p *Pins) SetUp(pod *corev1.Pod) error {
	if !p.IsStatic() {
		return nil
	}
	p.writing.Lock()
	defer p.writing.Unlock()
	p.mu.Lock()
	err := p.chooseLocked(pod)
	own, has := p.pods[pod.UID]
	next := p.stateLocked()
	if has {
		p.pods[pod.UID] = holding{Assignment: own.Assignment, saved: own.saved, touched: true}
	}
	p.mu.Unlock()
	if err != nil {
		why := podstate.Unallocated(err)
		p.Refuse(pod.UID, why)
		return errors.New(why.Message)
	}
	if !has || own.saved {
		return nil
	}
	next.give(pod.UID, own.Assignment)
	if err := p.write("nodeagent/cpu.choose", next); err != nil {
		return err
	}
	p.mu.Lock()
	p.pods[pod.UID] = holding{Assignment: own.Assignment, saved: true, touched: true}
	p.mu.Unlock()
	p.changed.Send()
	return nil
}

// chooseLocked gives a Pod processors that nobody has, unless it has its own already. One that was started without
// stays without.
func (p *Pins) chooseLocked(pod *corev1.Pod) error {
	if _, has := p.pods[pod.UID]; has || !p.IsStatic() || lifecycle.Began(pod) {
		return nil
	}
	own, err := assign(request{Pod: pod, Machine: p.machine, Free: p.sharedLocked().Difference(p.reserved)})
	if err == nil && len(own) > 0 {
		p.pods[pod.UID] = holding{Assignment: own}
	}
	return err
}

// sharedLocked is what all share that have no processors of their own.
func (p *Pins) sharedLocked() cpuset.CPUSet {
	shared := p.machine.all()
	for _, h := range p.pods {
		if !h.stopped {
			shared = shared.Difference(h.all())
		}
	}
	return shared
}

// stateLocked is what is to be on disk.
func (p *Pins) stateLocked() state {
	s := state{Shared: p.machine.all(), Pods: map[types.UID]Assignment{}}
	for uid, h := range p.pods {
		if h.saved {
			s.give(uid, h.Assignment)
		}
	}
	return s
}

func (s *state) give(uid types.UID, own Assignment) {
	s.Pods[uid] = own
	s.Shared = s.Shared.Difference(own.all())
}

// write replaces the file.
func (p *Pins) write(place string, s state) error {
	data, err := s.encode()
	if err != nil {
		return fmt.Errorf("encoding who has which cpus: %w", err)
	}
	return failpoint.Around(place, func() error {
		if err := wholefile.Write(p.file(), data, 0o600); err != nil {
			return fmt.Errorf("writing who has which cpus: %w", err)
		}
		return nil
	})
}

// Container returns the processors of a container in the kernel's form, and whether it has them for itself. Under
// policy none there is no bound: the text is empty.
func (p *Pins) Container(uid types.UID, name string) (cpus string, exclusive bool) {
	if !p.IsStatic() {
		return "", false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if own, ok := p.pods[uid].Assignment[name]; ok {
		return own.String(), true
	}
	return p.sharedLocked().String(), false
}

// Exclusive returns the processors that a container has for itself; none if it shares.
func (p *Pins) Exclusive(uid types.UID, name string) cpuset.CPUSet {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pods[uid].Assignment[name]
}

// Holds reports whether a container of the Pod has processors for itself.
func (p *Pins) Holds(uid types.UID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.pods[uid].Assignment) > 0
}

// Allocatable returns the processors that may be given out, taken ones included.
func (p *Pins) Allocatable() cpuset.CPUSet { return p.machine.all().Difference(p.reserved) }

// Stopped says that no process of a Pod is left, nor can one appear: the next Pod may have its processors before it is
// torn down, when the API knows already that it has ended. It does not block.
func (p *Pins) Stopped(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopLocked(uid)
	p.changed.Send()
}

func (p *Pins) stopLocked(uid types.UID) {
	if h, has := p.pods[uid]; has {
		p.pods[uid] = holding{Assignment: h.Assignment, touched: h.touched, stopped: true}
	}
}

// Pods returns those that have processors of their own.
func (p *Pins) Pods() []types.UID {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.pods))
}

// TearDown frees the processors of a Pod of which no container is left.
func (p *Pins) TearDown(uid types.UID) error {
	p.writing.Lock()
	defer p.writing.Unlock()
	p.mu.Lock()
	has := p.pods[uid]
	p.stopLocked(uid)
	next := p.stateLocked()
	p.mu.Unlock()
	if has.touched {
		if err := p.write("nodeagent/cpu.free", next); err != nil {
			return err
		}
	}
	p.mu.Lock()
	delete(p.pods, uid)
	p.mu.Unlock()
	if has.Assignment != nil {
		p.changed.Send()
	}
	return nil
}
