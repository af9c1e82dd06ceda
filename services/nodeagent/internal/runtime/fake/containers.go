package fake

import (
	"context"
	"fmt"
	"time"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"keelson.dev/services/nodeagent/internal/observed"
	"keelson.dev/services/nodeagent/internal/runtime"
)

// CreateContainer implements runtime.Containers.
func (r *Runtime) CreateContainer(ctx context.Context, sandboxID string, config *cri.ContainerConfig,
	_ *cri.PodSandboxConfig) (string, error) {
	name := config.Metadata.Name
	if err := r.begin(ctx, "CreateContainer", name); err != nil {
		return "", err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.sandboxes[sandboxID]
	if s == nil || !s.Ready {
		return "", fmt.Errorf("creating container %s: sandbox %s: %w", name, sandboxID, runtime.ErrNotFound)
	}
	for _, c := range r.containers {
		if c.PodUID == s.PodUID && c.Name == name && c.Attempt == config.Metadata.Attempt {
			return "", fmt.Errorf("creating container %s: attempt %d exists", name, c.Attempt)
		}
	}
	image := config.Image.GetUserSpecifiedImage()
	if image == "" {
		image = config.Image.GetImage()
	}
	c := &container{behavior: r.behaviors[image], limits: config.GetLinux().GetResources(), exited: make(chan struct{}),
		Container: observed.Container{
			ID: r.idLocked("container"), SandboxID: sandboxID, PodUID: s.PodUID, Name: name,
			Attempt: config.Metadata.Attempt,
			State:   observed.Created, CreatedAt: time.Now(), Image: image, ImageID: config.Image.GetImage(),
			LogPath: config.LogPath, Annotations: config.Annotations,
		}}
	for _, m := range config.Mounts {
		c.Mounts = append(c.Mounts, observed.Mount{ContainerPath: m.ContainerPath,
			RecursiveReadOnly: m.RecursiveReadOnly, Image: m.GetImage().GetImage()})
	}
	r.containers[c.ID] = c
	r.notifyLocked(runtime.Event{PodUID: c.PodUID, ContainerID: c.ID})
	return c.ID, nil
}

// StartContainer implements runtime.Containers.
func (r *Runtime) StartContainer(ctx context.Context, id string) error {
	if err := r.begin(ctx, "StartContainer", r.nameOf(id)); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.containers[id]
	if c == nil || c.State != observed.Created {
		return fmt.Errorf("starting container %s: it is not in state created", id)
	}
	c.State = observed.Running
	if err := c.behavior.StartError; err != nil {
		r.exitLocked(c, 128, "StartError")
		return fmt.Errorf("starting container %s: %w", id, err)
	}
	c.StartedAt = time.Now()
	r.notifyLocked(runtime.Event{PodUID: c.PodUID, ContainerID: c.ID})
	if c.behavior.RunFor > 0 {
		r.exitAfter(c, c.behavior.RunFor, c.behavior.ExitCode)
	}
	return nil
}

// exitAfter ends an instance later, unless it has ended by then.
func (r *Runtime) exitAfter(c *container, d time.Duration, code int32) {
	go func() {
		select {
		case <-time.After(d):
		case <-c.exited:
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.exitLocked(c, code, "")
	}()
}

// StopContainer implements runtime.Containers.
func (r *Runtime) StopContainer(ctx context.Context, id string, timeout time.Duration) error {
	if err := r.begin(ctx, "StopContainer", r.nameOf(id)); err != nil {
		return err
	}
	r.mu.Lock()
	c := r.containers[id]
	if c == nil || c.State != observed.Running {
		r.mu.Unlock()
		return nil
	}
	if timeout > 0 {
		r.noteLocked("TERM", c.Name)
	}
	if b := c.behavior; timeout == 0 {
		r.noteLocked("KILL", c.Name)
		r.exitLocked(c, 137, "")
	} else if !b.IgnoreTERM && b.StopTakes == 0 {
		r.exitLocked(c, 143, "")
	} else if !b.IgnoreTERM {
		r.exitAfter(c, b.StopTakes, 143)
	}
	r.mu.Unlock()
	select {
	case <-c.exited:
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(timeout):
		r.mu.Lock()
		if c.State == observed.Running {
			r.noteLocked("KILL", c.Name)
		}
		r.exitLocked(c, 137, "")
		r.mu.Unlock()
	}
	return nil
}

// RemoveContainer implements runtime.Containers.
func (r *Runtime) RemoveContainer(ctx context.Context, id string) error {
	if err := r.begin(ctx, "RemoveContainer", r.nameOf(id)); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.containers[id]; c != nil {
		if c.State == observed.Running {
			return fmt.Errorf("removing container %s: it is running", id)
		}
		if c.leftover {
			return fmt.Errorf("removing container %s: cannot delete running task", id)
		}
		delete(r.containers, id)
		r.notifyLocked(runtime.Event{PodUID: c.PodUID, ContainerID: id})
	}
	return nil
}

// UpdateContainer implements runtime.Containers.
func (r *Runtime) UpdateContainer(ctx context.Context, id string, limits *cri.LinuxContainerResources) error {
	if err := r.begin(ctx, "UpdateContainer", r.nameOf(id)); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.containers[id]
	if c == nil || c.State != observed.Running {
		return fmt.Errorf("changing the limits of container %s: %w", id, runtime.ErrNotFound)
	}
	c.limits = limits
	return nil
}

// Limits returns the limits of a container's newest instance; nil if it has none.
func (r *Runtime) Limits(podUID, name string) *cri.LinuxContainerResources {
	r.mu.Lock()
	defer r.mu.Unlock()
	newest := r.newestLocked(podUID, name)
	if newest == nil {
		return nil
	}
	return newest.limits
}

// newestLocked returns the newest instance of a container; nil if it has none.
func (r *Runtime) newestLocked(podUID, name string) (newest *container) {
	for _, c := range r.containers {
		if c.PodUID == podUID && c.Name == name && (newest == nil || c.Attempt > newest.Attempt) {
			newest = c
		}
	}
	return newest
}

// ReopenLog implements runtime.Containers.
func (r *Runtime) ReopenLog(ctx context.Context, id string) error {
	return r.begin(ctx, "ReopenLog", r.nameOf(id))
}

// ExecSync implements runtime.Containers: with SetExec's function, or else with success.
func (r *Runtime) ExecSync(ctx context.Context, id string, command []string, timeout time.Duration) (runtime.ExecResult,
	error) {
	name := r.nameOf(id)
	if err := r.begin(ctx, "ExecSync", name); err != nil {
		return runtime.ExecResult{}, err
	}
	r.mu.Lock()
	c, execs := r.containers[id], r.execs
	if c == nil || c.State != observed.Running {
		r.mu.Unlock()
		return runtime.ExecResult{}, fmt.Errorf("running a command in container %s: %w", id, runtime.ErrNotFound)
	}
	r.mu.Unlock()
	if execs == nil {
		return runtime.ExecResult{}, nil
	}
	return execs(name, command)
}

func (r *Runtime) nameOf(id string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.containers[id]; c != nil {
		return c.Name
	}
	return id
}

// ImageStatus implements runtime.Images.
func (r *Runtime) ImageStatus(ctx context.Context, ref string) (runtime.Image, bool, error) {
	if err := r.begin(ctx, "ImageStatus", ref); err != nil {
		return runtime.Image{}, false, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	image, ok := r.images[ref]
	return image, ok, nil
}

// PullImage implements runtime.Images: every image can be pulled, unless Fail or SetRegistry says otherwise.
func (r *Runtime) PullImage(ctx context.Context, ref string, auth *cri.AuthConfig, _ *cri.PodSandboxConfig) (string,
	error) {
	if err := r.begin(ctx, "PullImage", ref); err != nil {
		return "", err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.registry != nil {
		if err := r.registry(ref, auth); err != nil {
			return "", err
		}
	}
	if _, ok := r.images[ref]; !ok {
		r.images[ref] = runtime.Image{ID: "sha256:" + ref, Tags: []string{ref}, Size: 1 << 20}
	}
	return r.images[ref].ID, nil
}

// ListImages implements runtime.Images.
func (r *Runtime) ListImages(ctx context.Context) ([]runtime.Image, error) {
	if err := r.begin(ctx, "ListImages", ""); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []runtime.Image
	for _, i := range r.images {
		out = append(out, i)
	}
	return out, nil
}

// RemoveImage implements runtime.Images.
func (r *Runtime) RemoveImage(ctx context.Context, id string) error {
	if err := r.begin(ctx, "RemoveImage", id); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for ref, i := range r.images {
		if i.ID == id {
			delete(r.images, ref)
		}
	}
	return nil
}

// SetImageFs sets where images are stored.
func (r *Runtime) SetImageFs(dir string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.imageFs = dir
}

// ImageFs implements runtime.Images.
func (r *Runtime) ImageFs(ctx context.Context) (runtime.ImageFs, error) {
	if err := r.begin(ctx, "ImageFs", ""); err != nil {
		return runtime.ImageFs{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return runtime.ImageFs{Dir: r.imageFs}, nil
}

// Write sets how much the newest instance of a container has written. It returns false if it has none.
func (r *Runtime) Write(podUID, name string, bytes, inodes int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	newest := r.newestLocked(podUID, name)
	if newest == nil {
		return false
	}
	newest.layer.Bytes, newest.layer.Inodes = bytes, inodes
	return true
}

// Layers implements runtime.Containers.
func (r *Runtime) Layers(ctx context.Context, podUID string) ([]runtime.Layer, error) {
	if err := r.begin(ctx, "Layers", podUID); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []runtime.Layer
	for _, c := range r.containers {
		if c.PodUID == podUID {
			layer := c.layer
			layer.Container, layer.Attempt = c.Name, c.Attempt
			out = append(out, layer)
		}
	}
	return out, nil
}
