package fake

import (
	"context"
	"errors"
	"fmt"
	"time"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"keelson.dev/services/nodeagent/internal/observed"
	"keelson.dev/services/nodeagent/internal/runtime"
)

// Version implements runtime.Runtime.
func (r *Runtime) Version(ctx context.Context) (runtime.Version, error) {
	return runtime.Version{Name: "fake", Version: "v1"}, r.begin(ctx, "Version", "")
}

// Status implements runtime.Runtime.
func (r *Runtime) Status(ctx context.Context) (runtime.Status, error) {
	err := r.begin(ctx, "Status", "")
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status, err
}

// EndOrphans implements runtime.Runtime: the fake has no orphans.
func (r *Runtime) EndOrphans(ctx context.Context) error { return r.begin(ctx, "EndOrphans", "") }

// UpdatePodCIDR implements runtime.Runtime.
func (r *Runtime) UpdatePodCIDR(ctx context.Context, cidr string) error {
	return r.begin(ctx, "UpdatePodCIDR", cidr)
}

// ListPods implements runtime.Pods.
func (r *Runtime) ListPods(ctx context.Context) ([]observed.Pod, error) {
	if err := r.begin(ctx, "ListPods", ""); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	uids := map[string]bool{}
	for _, s := range r.sandboxes {
		uids[s.PodUID] = true
	}
	var out []observed.Pod
	for uid := range uids {
		out = append(out, r.podLocked(uid))
	}
	return out, nil
}

// PodState implements runtime.Pods.
func (r *Runtime) PodState(ctx context.Context, podUID string) (observed.Pod, error) {
	if err := r.begin(ctx, "PodState", podUID); err != nil {
		return observed.Pod{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.podLocked(podUID), nil
}

func (r *Runtime) podLocked(uid string) observed.Pod {
	pod := observed.Pod{UID: uid}
	for _, s := range r.sandboxes {
		if s.PodUID == uid {
			pod.Namespace, pod.Name = s.Namespace, s.Name
			pod.Sandboxes = append(pod.Sandboxes, s.Sandbox)
		}
	}
	for _, c := range r.containers {
		if c.PodUID == uid {
			pod.Containers = append(pod.Containers, c.Container)
		}
	}
	pod.Sort()
	return pod
}

// Watch implements runtime.Pods.
func (r *Runtime) Watch(ctx context.Context, notify func(runtime.Event)) error {
	if err := r.begin(ctx, "Watch", ""); err != nil {
		return err
	}
	events := make(chan runtime.Event, 1000)
	r.mu.Lock()
	r.serial++
	id := r.serial
	r.watchers[id] = events
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.watchers, id)
	}()
	for {
		select {
		case e := <-events:
			notify(e)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Handler is the runtime's only handler besides the default.
const Handler = "runc"

// RunSandbox implements runtime.Sandboxes.
func (r *Runtime) RunSandbox(ctx context.Context, config *cri.PodSandboxConfig, handler string) (string, error) {
	if handler != "" && handler != Handler {
		return "", fmt.Errorf("no runtime for %q is configured", handler)
	}
	m := config.Metadata
	if err := r.begin(ctx, "RunSandbox", m.Name); err != nil {
		return "", err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.sandboxes {
		if s.PodUID == m.Uid && s.Attempt == m.Attempt {
			return "", fmt.Errorf("running sandbox of pod %s: attempt %d exists", m.Name, m.Attempt)
		}
	}
	s := &sandbox{observed.Sandbox{
		ID: r.idLocked("sandbox"), PodUID: m.Uid, Namespace: m.Namespace, Name: m.Name, Attempt: m.Attempt, Ready: true,
		CreatedAt: time.Now(),
	}}
	s.IPs = []string{fmt.Sprintf("10.88.%d.%d", r.serial/250, 2+r.serial%250)}
	r.sandboxes[s.ID] = s
	r.notifyLocked(runtime.Event{PodUID: m.Uid})
	return s.ID, nil
}

// StopSandbox implements runtime.Sandboxes.
func (r *Runtime) StopSandbox(ctx context.Context, id string) error {
	if err := r.begin(ctx, "StopSandbox", id); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopSandboxLocked(id)
	return nil
}

func (r *Runtime) stopSandboxLocked(id string) {
	s := r.sandboxes[id]
	if s == nil {
		return
	}
	for _, c := range r.containers {
		if c.SandboxID == id && c.State == observed.Running {
			r.noteLocked("KILL", c.Name)
			r.exitLocked(c, 137, "")
		}
	}
	s.Ready = false
	r.notifyLocked(runtime.Event{PodUID: s.PodUID})
}

// RemoveSandbox implements runtime.Sandboxes.
func (r *Runtime) RemoveSandbox(ctx context.Context, id string) error {
	if err := r.begin(ctx, "RemoveSandbox", id); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopSandboxLocked(id)
	for _, c := range r.containers {
		if c.SandboxID == id && c.leftover {
			return fmt.Errorf("removing sandbox %s: container %s: cannot delete running task", id, c.ID)
		}
	}
	for cid, c := range r.containers {
		if c.SandboxID == id {
			delete(r.containers, cid)
		}
	}
	delete(r.sandboxes, id)
	return nil
}

// ExecURL implements runtime.Streams; like the other two it fails: a fake has no terminals.
func (r *Runtime) ExecURL(context.Context, *cri.ExecRequest) (string, error) {
	return "", errNoStreams
}

// AttachURL implements runtime.Streams.
func (r *Runtime) AttachURL(context.Context, *cri.AttachRequest) (string, error) {
	return "", errNoStreams
}

// PortForwardURL implements runtime.Streams.
func (r *Runtime) PortForwardURL(context.Context, *cri.PortForwardRequest) (string, error) {
	return "", errNoStreams
}

var errNoStreams = errors.New("a runtime in memory has no streams")
