package deviceplugin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"keelson.dev/kit/failpoint"
	"keelson.dev/services/nodeagent/internal/lifecycle"
	"keelson.dev/services/nodeagent/internal/podstate"
)

// errAway is wrapped by the error about an absent plugin: it may come back.
var errAway = errors.New("its plugin is not there")

// SetUp has the plugins allocate the devices of a Pod. The choice is on disk before they are called, and their
// answer before SetUp returns. A Pod whose plugin refuses is ended; one whose plugin is away waits for it.
func (m *Manager) SetUp(ctx context.Context, pod *corev1.Pod) error {
	h, err := m.settle(ctx, pod)
	if err == nil && h != nil && h.Grants == nil {
		err = m.allocate(ctx, pod.UID, h)
	}
	var no *refused
	if errors.As(err, &no) {
		m.Refuse(pod.UID, podstate.Unallocated(no.why))
	}
	return err
}

// refused is why a Pod can never have its devices.
type refused struct{ why error }

// Error implements error.
func (r *refused) Error() string { return podstate.Unallocated(r.why).Message }

// settle chooses the devices of a Pod for good, after asking the plugins with a preference, and records them. It
// returns nil for a Pod without devices.
func (m *Manager) settle(ctx context.Context, pod *corev1.Pod) (*holding, error) {
	preferred := map[choice][]string{}
	for {
		h, ask, err := m.choose(pod, preferred)
		if err != nil || h == nil || h.saved {
			return h, err
		}
		if ask == nil {
			return h, m.save(pod.UID, h.record)
		}
		if preferred[ask.choice], err = m.prefer(ctx, *ask); err != nil {
			return nil, err
		}
	}
}

// choose chooses with what is known, and returns what to ask first.
func (m *Manager) choose(pod *corev1.Pod, preferred map[choice][]string) (*holding, *question, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	h := m.pods[pod.UID]
	switch {
	case m.damaged[pod.UID] != nil:
		return nil, nil, nil // Container reports that; running containers run on
	case h == nil && lifecycle.Began(pod):
		return nil, nil, nil // it was started without devices
	}
	if h == nil || !h.saved {
		delete(m.waiting, pod.UID)
		if name := m.awayLocked(pod); name != "" {
			m.waiting[pod.UID] = true
			return nil, nil, fmt.Errorf("%s: %w", name, errAway)
		}
	}
	h, questions, err := m.chooseLocked(pod, preferred)
	if err != nil {
		return nil, nil, &refused{err}
	}
	for _, q := range questions {
		if p := m.plugins[q.Resource]; p.session != nil && p.session.options.GetGetPreferredAllocationAvailable() {
			return h, &q, nil
		}
	}
	return h, nil, nil
}

// prefer asks a plugin which of its devices it prefers. It ignores a plugin that does not answer.
func (m *Manager) prefer(ctx context.Context, q question) ([]string, error) {
	var out []string
	err := m.call(ctx, q.Resource, "GetPreferredAllocation", func(ctx context.Context, s *session) error {
		answer, err := s.client.GetPreferredAllocation(ctx, &api.PreferredAllocationRequest{
			ContainerRequests: []*api.ContainerPreferredAllocationRequest{{AvailableDeviceIDs: q.Available,
				MustIncludeDeviceIDs: q.Must, AllocationSize: int32(q.Size)}}})
		if err == nil && len(answer.GetContainerResponses()) == 1 {
			out = answer.GetContainerResponses()[0].GetDeviceIDs()
		}
		return err
	})
	if err != nil && ctx.Err() == nil && !errors.Is(err, errAway) {
		m.Log.Warn("a device plugin has no say in a choice", zap.Error(err))
		return nil, nil
	}
	return out, err
}

// save records the choice.
func (m *Manager) save(uid types.UID, r record) error {
	err := failpoint.Around("nodeagent/device.choose", func() error { return m.records.save(uid, r) })
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pods[uid] = &holding{record: r, saved: true}
	return nil
}

// allocate requests all devices of a Pod and records the answers.
func (m *Manager) allocate(ctx context.Context, uid types.UID, h *holding) error {
	grants := map[string]Grant{}
	for _, container := range slices.Sorted(maps.Keys(h.Devices)) {
		for _, name := range slices.Sorted(maps.Keys(h.Devices[container])) {
			grant, err := m.ask(ctx, name, h.Devices[container][name])
			if err != nil {
				return err
			}
			grants[container] = grants[container].with(grant)
		}
	}
	return m.save(uid, record{Devices: h.Devices, Grants: grants})
}

// ask has a plugin allocate devices to one container.
func (m *Manager) ask(ctx context.Context, name corev1.ResourceName, ids []string) (out Grant, err error) {
	err = m.call(ctx, name, "Allocate", func(ctx context.Context, s *session) error {
		return failpoint.Around("nodeagent/device.allocate", func() error {
			answer, err := s.client.Allocate(ctx, &api.AllocateRequest{
				ContainerRequests: []*api.ContainerAllocateRequest{{DevicesIds: ids}}})
			if err != nil {
				return err
			}
			if out, err = grantOf(name, answer); err != nil {
				return err
			}
			if s.options.GetPreStartRequired() {
				out.PreStart = []corev1.ResourceName{name}
			}
			return nil
		})
	})
	if code := status.Code(errors.Unwrap(err)); err != nil && ctx.Err() == nil && !errors.Is(err, errAway) &&
		!errors.Is(err, failpoint.ErrInjected) && code != codes.Unavailable {
		return Grant{}, &refused{err}
	}
	return out, err
}

// Container returns what a container gets besides its own, after calling the plugins that require a call before
// each start.
func (m *Manager) Container(ctx context.Context, pod *corev1.Pod, container *corev1.Container) (Grant, error) {
	m.mu.Lock()
	damage, h := m.damaged[pod.UID], m.pods[pod.UID]
	if damage != nil && len(needs(container, m.stockLocked())) == 0 {
		damage = nil
	}
	m.mu.Unlock()
	if damage != nil {
		return Grant{}, fmt.Errorf("nobody knows which devices container %s holds: %w", container.Name, damage)
	}
	if h == nil || h.Devices[container.Name] == nil {
		return Grant{}, nil
	}
	grant, known := h.Grants[container.Name]
	if !known {
		return Grant{}, fmt.Errorf("the devices of container %s are not allocated yet", container.Name)
	}
	for _, name := range grant.PreStart {
		err := m.call(ctx, name, "PreStartContainer", func(ctx context.Context, s *session) error {
			_, err := s.client.PreStartContainer(ctx, &api.PreStartContainerRequest{
				DevicesIds: h.Devices[container.Name][name]})
			return err
		})
		if err != nil {
			return Grant{}, err
		}
	}
	return grant, nil
}

// Stopped notes that no process of a Pod is left and none can appear: the next Pod may have its devices before it
// is torn down, since the API already reports its end. It does not block.
func (m *Manager) Stopped(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.damaged, uid)
	if h := m.pods[uid]; h != nil {
		m.pods[uid] = &holding{record: h.record, saved: h.saved, stopped: true}
	}
}

// TearDown forgets the devices of a Pod without containers.
func (m *Manager) TearDown(uid types.UID) error {
	if err := failpoint.Around("nodeagent/device.free", func() error { return m.records.remove(uid) }); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.pods, uid)
	delete(m.damaged, uid)
	delete(m.waiting, uid)
	return nil
}
