// Package deviceplugin gives Pods the devices of plugins (k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1). A plugin
// registers at a socket of the agent, or through the folder in which CSI drivers register too; while it reports its
// devices, the Node has them as an extended resource.
//
// The devices of a Pod are chosen when the node admits the Pod, are on disk before a plugin is asked to allocate them,
// and stay the same until all containers of the Pod have ended, also if agent or plugin die meanwhile.
//
//	decide.go         which devices a Pod gets
//	decide_plugin.go  what plugins report, and what the API gets of it
//	manager.go        the state of the node
//	allocate.go       allocation of a Pod's devices
//	session.go        a plugin that serves
//	registration.go   how plugins register
//	records.go        what is on disk
package deviceplugin

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/nodeagent/internal/podstate"
)

// Config is what a Manager needs.
type Config struct {
	// Root is the agent's own folder, which contains the sockets of all plugins.
	Root string
	Log  *zap.Logger
	// Changed is called after the amounts of the node have changed, Affected after the devices of a Pod have changed,
	// Returned after a plugin has come back for which a Pod may wait. Refuse ends an admitted Pod that cannot have its
	// devices. None of them may block.
	Changed  func()
	Affected func(uid types.UID)
	Returned func(uid types.UID)
	Refuse   func(uid types.UID, why podstate.Outcome)
}

// Manager manages the devices of one node. Its methods are safe for concurrent use, except for calls about the same
// Pod.
type Manager struct {
	Config
	records records
	// sessions end with ctx.
	ctx      context.Context
	end      context.CancelFunc
	sessions sync.WaitGroup

	mu sync.Mutex // guards the fields below
	// plugins are all that have ever registered, by resource.
	plugins map[corev1.ResourceName]*plugin
	// pods are the devices of Pods, from their admission until they are torn down.
	pods map[types.UID]*holding
	// waiting are the Pods that have no devices yet because a plugin is away.
	waiting map[types.UID]bool
	// startedAt is when the agent started.
	startedAt time.Time
	// damaged maps Pods whose devices are unknown to the error of their record.
	damaged map[types.UID]error
}

// plugin is what is known of a resource.
type plugin struct {
	source
	// session is nil while no plugin serves.
	session *session
}

// holding is the devices of a Pod.
type holding struct {
	record
	// saved means that the choice is on disk and final.
	saved bool
	// stopped means that no process uses the devices any more: other Pods may have them.
	stopped bool
}

// Open loads the devices of a node as an earlier agent left them. No plugin is present yet.
func Open(config Config) (*Manager, error) {
	m := &Manager{Config: config, records: records{root: config.Root}, plugins: map[corev1.ResourceName]*plugin{},
		pods: map[types.UID]*holding{}, damaged: map[types.UID]error{},
		waiting: map[types.UID]bool{}, startedAt: time.Now()}
	m.ctx, m.end = context.WithCancel(context.Background())
	names, err := m.records.open()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		m.plugins[name] = &plugin{}
	}
	uids, err := m.records.pods()
	if err != nil {
		return nil, err
	}
	for _, uid := range uids {
		r, err := m.records.load(uid)
		if err != nil {
			m.damaged[uid] = err
			m.Log.Warn("no devices are given out until the Pod of a damaged record has ended", zap.Error(err))
			continue
		}
		m.pods[uid] = &holding{record: r, saved: true}
	}
	return m, nil
}

// Amounts returns what the Node has of all resources of plugins.
func (m *Manager) Amounts() (capacity, allocatable corev1.ResourceList) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return amounts(m.sourcesLocked(), time.Now())
}

// Manages reports whether a resource belongs to plugins: Admit checks whether enough of it is available.
func (m *Manager) Manages(name corev1.ResourceName) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.plugins[name] != nil
}

// Health returns the health of a Pod's devices, by container.
func (m *Manager) Health(uid types.UID) map[string][]corev1.ResourceStatus {
	m.mu.Lock()
	defer m.mu.Unlock()
	if h := m.pods[uid]; h != nil {
		return healths(h.Devices, m.sourcesLocked())
	}
	return nil
}

// Held returns the devices of a Pod, also while their plugins are away.
func (m *Manager) Held(uid types.UID) Allocation {
	m.mu.Lock()
	defer m.mu.Unlock()
	if h := m.pods[uid]; h != nil {
		return h.Devices
	}
	return nil
}

// Allocatable returns the healthy devices of the plugins that are present, including those that Pods hold.
func (m *Manager) Allocatable() Devices {
	m.mu.Lock()
	defer m.mu.Unlock()
	return healthy(m.stockLocked())
}

// Pods returns the Pods that have a record on disk.
func (m *Manager) Pods() ([]types.UID, error) { return m.records.pods() }

// Admit assigns devices to a Pod, or returns why it cannot have them. It does not call plugins. After a start of
// the agent plugins have time to come back: until then a Pod is admitted, and SetUp decides.
func (m *Manager) Admit(pod *corev1.Pod) *podstate.Outcome {
	m.mu.Lock()
	defer m.mu.Unlock()
	if time.Since(m.startedAt) < grace {
		if name := m.awayLocked(pod); name != "" && m.plugins[name].GoneAt.IsZero() {
			return nil
		}
	}
	if _, _, err := m.chooseLocked(pod, nil); err != nil {
		why := podstate.Unallocated(err)
		return &why
	}
	return nil
}

// chooseLocked assigns unused devices to a Pod, unless its choice is final already. It returns nil for a Pod that
// needs none, and the questions that plugins may be asked before the choice is final.
func (m *Manager) chooseLocked(pod *corev1.Pod, preferred map[choice][]string) (*holding, []question, error) {
	h := m.pods[pod.UID]
	if h != nil && h.saved {
		return h, nil, nil
	}
	devices, questions, err := assign(request{Pod: pod, Stock: m.stockLocked(), Taken: m.takenLocked(pod.UID),
		Preferred: preferred})
	if err != nil || len(devices) == 0 {
		delete(m.pods, pod.UID)
		return nil, nil, err
	}
	for uid, damage := range m.damaged {
		delete(m.pods, pod.UID)
		return nil, nil, fmt.Errorf("nobody knows which devices pod %s holds: %w", uid, damage)
	}
	h = &holding{record: record{Devices: devices}}
	m.pods[pod.UID] = h
	return h, questions, nil
}

// awayLocked returns a resource that the Pod needs and whose plugin is away; empty if all are present.
func (m *Manager) awayLocked(pod *corev1.Pod) corev1.ResourceName {
	has := m.stockLocked()
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			for name := range needs(&list[i], has) {
				if !m.plugins[name].Live {
					return name
				}
			}
		}
	}
	return ""
}

func (m *Manager) stockLocked() stock {
	out := stock{}
	for name, p := range m.plugins {
		out[name] = map[string]bool{}
		for id, healthy := range p.Devices {
			out[name][id] = healthy && p.Live
		}
	}
	return out
}

// takenLocked returns the devices of all Pods that have not stopped, except one.
func (m *Manager) takenLocked(but types.UID) set {
	out := set{}
	for uid, h := range m.pods {
		if uid == but || h.stopped {
			continue
		}
		for _, devices := range h.Devices {
			for name, ids := range devices {
				out.add(name, ids)
			}
		}
	}
	return out
}

func (m *Manager) sourcesLocked() map[corev1.ResourceName]source {
	out := make(map[corev1.ResourceName]source, len(m.plugins))
	for name, p := range m.plugins {
		out[name] = source{Devices: maps.Clone(p.Devices), Live: p.Live, GoneAt: p.GoneAt}
	}
	return out
}

// holdersLocked returns the Pods that hold devices of a resource.
func (m *Manager) holdersLocked(name corev1.ResourceName) []types.UID {
	var out []types.UID
	for uid, h := range m.pods {
		for _, devices := range h.Devices {
			if len(devices[name]) > 0 {
				out = append(out, uid)
				break
			}
		}
	}
	return out
}
