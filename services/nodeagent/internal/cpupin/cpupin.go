// Package cpupin gives containers CPUs of their own, under policy static: the containers of Guaranteed Pods that
// request whole CPUs. All others share the rest, which always includes the reserved CPUs.
//
// The CPUs of a Pod are chosen when the node admits the Pod, are on disk before a container of it is created, and stay
// the same until all containers of the Pod have ended, also if agent or runtime die meanwhile. The package does not
// consider the locality of memory and devices (NUMA).
//
//	decide.go        which CPUs a Pod gets
//	decide_state.go  the state on disk, and whether it fits the machine
//	cpupin.go        the state of the node
//	follow.go        updates running containers in the runtime
//	topology.go      the topology of the machine's CPUs
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

// fileName is the name of the state file in the agent's own folder, the same as the kubelet's.
const fileName = "cpu_manager_state"

// Config is what Pins need.
type Config struct {
	Settings
	// Root is the agent's own folder.
	Root string
	Log  *zap.Logger
	// Machine is read under policy static only. Named are the reserved CPUs if they are named; otherwise
	// ReservedMilli, in thousandths, determines how many are reserved.
	Machine       func() (Machine, error)
	Named         cpuset.CPUSet
	ReservedMilli int64
	// Running returns the running instances; Update changes the CPUs of one in the runtime.
	Running func() []Running
	Update  Updater
	// Refuse ends an admitted Pod that cannot have its CPUs. It must not block.
	Refuse func(uid types.UID, why podstate.Outcome)
}

// Pins are the CPUs of one node and their owners. Methods are safe for concurrent use, except for calls about the
// same Pod. Under policy none they do nothing.
type Pins struct {
	Config
	machine  Machine
	reserved cpuset.CPUSet
	changed  wakeup.Signal // Run has something to compare

	writing sync.Mutex // held around each write of the file; locked before mu
	mu      sync.Mutex // guards pods
	pods    map[types.UID]holding
}

// holding is the CPUs of a Pod.
type holding struct {
	Assignment
	// saved means that they are certainly on disk, touched that they may be.
	saved, touched bool
	// stopped means that no process of the Pod is left: its CPUs are free, though they may be on disk.
	stopped bool
}

// Open loads the CPUs of a node as an earlier agent left them. The error about an unusable state on disk says what
// to do.
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

// restore takes over the state in the file. Policy none removes a file in which no Pod has CPUs.
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

// Admit assigns CPUs to a Pod, or returns why it cannot have them. It writes nothing yet.
func (p *Pins) Admit(pod *corev1.Pod) *podstate.Outcome {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.chooseLocked(pod); err != nil {
		why := podstate.Unallocated(err)
		return &why
	}
	return nil
}

// SetUp makes sure that a Pod's CPUs are on disk before it returns. A Pod that cannot have its CPUs is ended.
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

// chooseLocked assigns free CPUs to a Pod, unless it has some already. A Pod that was started without CPUs of its
// own gets none.
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

// sharedLocked returns the CPUs that all containers without CPUs of their own share.
func (p *Pins) sharedLocked() cpuset.CPUSet {
	shared := p.machine.all()
	for _, h := range p.pods {
		if !h.stopped {
			shared = shared.Difference(h.all())
		}
	}
	return shared
}

// stateLocked returns the state that is to be on disk.
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

// Container returns the CPUs of a container in the kernel's form, and whether it has them exclusively. Under policy
// none, CPUs are not restricted: the text is empty.
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

// Exclusive returns the CPUs that a container has exclusively; none if it shares.
func (p *Pins) Exclusive(uid types.UID, name string) cpuset.CPUSet {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pods[uid].Assignment[name]
}

// Holds reports whether a container of the Pod has exclusive CPUs.
func (p *Pins) Holds(uid types.UID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.pods[uid].Assignment) > 0
}

// Allocatable returns the CPUs that may be assigned, including taken ones.
func (p *Pins) Allocatable() cpuset.CPUSet { return p.machine.all().Difference(p.reserved) }

// Stopped notes that no process of a Pod is left and none can appear: the next Pod may have its CPUs before it is
// torn down, since the API already reports its end. It does not block.
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

// Pods returns the Pods that have CPUs of their own.
func (p *Pins) Pods() []types.UID {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.pods))
}

// TearDown frees the CPUs of a Pod without containers.
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
