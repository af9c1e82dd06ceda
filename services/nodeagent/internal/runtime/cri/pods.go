package cri

import (
	"context"
	"errors"
	"time"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"keelson.dev/kit/contained"
	"keelson.dev/services/nodeagent/internal/observed"
	"keelson.dev/services/nodeagent/internal/runtime"
)

// ListPods implements runtime.Pods with two calls.
func (r *Runtime) ListPods(ctx context.Context) ([]observed.Pod, error) {
	pods, err := r.list(ctx, nil)
	if err != nil {
		return nil, err
	}
	out := make([]observed.Pod, 0, len(pods))
	for _, p := range pods {
		p.Sort()
		out = append(out, *p)
	}
	return out, nil
}

// PodState implements runtime.Pods: lists give the existing objects, and one call for each the rest. A Pod's start
// waits for it twice, so independent calls run concurrently.
func (r *Runtime) PodState(ctx context.Context, podUID string) (observed.Pod, error) {
	pods, err := r.list(ctx, map[string]string{runtime.LabelPodUID: podUID})
	if err != nil {
		return observed.Pod{}, err
	}
	pod := pods[podUID]
	if pod == nil {
		return observed.Pod{UID: podUID}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, shortCall)
	defer cancel()
	err = together(
		func() error { return r.fillSandboxes(ctx, pod) },
		func() error { return r.fillContainers(ctx, pod) })
	if err != nil {
		return observed.Pod{}, err
	}
	pod.Sort()
	return *pod, nil
}

// together makes calls concurrently and returns when all of them have returned.
func together(calls ...func() error) error {
	problems := make([]error, len(calls))
	var all contained.Group
	for i, call := range calls {
		all.Go("asking the runtime", func() { problems[i] = call() }, func(err error) { problems[i] = err })
	}
	all.Wait()
	return errors.Join(problems...)
}

func (r *Runtime) list(ctx context.Context, labels map[string]string) (map[string]*observed.Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, shortCall)
	defer cancel()
	var sandboxes *cri.ListPodSandboxResponse
	var containers *cri.ListContainersResponse
	err := together(
		func() (err error) {
			sandboxes, err = r.runtime.ListPodSandbox(ctx,
				&cri.ListPodSandboxRequest{Filter: &cri.PodSandboxFilter{LabelSelector: labels}})
			return failed("listing sandboxes", err)
		},
		func() (err error) {
			containers, err = r.runtime.ListContainers(ctx,
				&cri.ListContainersRequest{Filter: &cri.ContainerFilter{LabelSelector: labels}})
			return failed("listing containers", err)
		})
	if err != nil {
		return nil, err
	}
	pods := map[string]*observed.Pod{}
	for _, s := range sandboxes.Items {
		addSandbox(pods, s)
	}
	for _, c := range containers.Containers {
		addContainer(pods, c)
	}
	return pods, nil
}

// of returns the entry of the Pod that the labels name. Objects without a Pod UID are not the nodeagent's.
func of(pods map[string]*observed.Pod, labels map[string]string) *observed.Pod {
	uid := labels[runtime.LabelPodUID]
	if uid == "" {
		return nil
	}
	if pods[uid] == nil {
		pods[uid] = &observed.Pod{UID: uid, Namespace: labels[runtime.LabelPodNamespace],
			Name: labels[runtime.LabelPodName]}
	}
	return pods[uid]
}

func addSandbox(pods map[string]*observed.Pod, s *cri.PodSandbox) {
	if pod := of(pods, s.Labels); pod != nil {
		pod.Sandboxes = append(pod.Sandboxes, observed.Sandbox{
			ID: s.Id, PodUID: pod.UID, Namespace: pod.Namespace, Name: pod.Name, Attempt: s.GetMetadata().GetAttempt(),
			Ready: s.State == cri.PodSandboxState_SANDBOX_READY, CreatedAt: instant(s.CreatedAt),
		})
	}
}

func addContainer(pods map[string]*observed.Pod, c *cri.Container) {
	if pod := of(pods, c.Labels); pod != nil {
		pod.Containers = append(pod.Containers, observed.Container{
			ID: c.Id, SandboxID: c.PodSandboxId, PodUID: pod.UID, Name: c.GetMetadata().GetName(),
			Attempt: c.GetMetadata().GetAttempt(),
			State:   state(c.State), CreatedAt: instant(c.CreatedAt), Image: c.Annotations[runtime.AnnotationImage],
			Annotations: c.Annotations,
		})
	}
}

// fillSandboxes adds the addresses of sandboxes that are ready.
func (r *Runtime) fillSandboxes(ctx context.Context, pod *observed.Pod) error {
	for i := range pod.Sandboxes {
		s := &pod.Sandboxes[i]
		if !s.Ready {
			continue
		}
		answer, err := r.runtime.PodSandboxStatus(ctx, &cri.PodSandboxStatusRequest{PodSandboxId: s.ID})
		if notFound(err) {
			s.Ready = false
			continue
		}
		if err != nil {
			return failed("asking for the state of sandbox "+s.ID, err)
		}
		s.Ready = answer.GetStatus().GetState() == cri.PodSandboxState_SANDBOX_READY
		network := answer.GetStatus().GetNetwork()
		if network.GetIp() != "" {
			s.IPs = append(s.IPs, network.GetIp())
		}
		for _, ip := range network.GetAdditionalIps() {
			s.IPs = append(s.IPs, ip.GetIp())
		}
	}
	return nil
}

// fillContainers adds what the list does not contain. It drops an instance that disappears meanwhile.
func (r *Runtime) fillContainers(ctx context.Context, pod *observed.Pod) error {
	kept := pod.Containers[:0]
	for i := range pod.Containers {
		c := pod.Containers[i]
		answer, err := r.runtime.ContainerStatus(ctx, &cri.ContainerStatusRequest{ContainerId: c.ID})
		if notFound(err) {
			continue
		}
		if err != nil {
			return failed("asking for the state of container "+c.ID, err)
		}
		fill(&c, answer.GetStatus())
		kept = append(kept, c)
	}
	pod.Containers = kept
	return nil
}

func fill(c *observed.Container, s *cri.ContainerStatus) {
	c.State = state(s.GetState())
	c.StartedAt, c.FinishedAt = instant(s.GetStartedAt()), instant(s.GetFinishedAt())
	c.ExitCode, c.Reason, c.Message = s.GetExitCode(), s.GetReason(), s.GetMessage()
	c.ImageID, c.LogPath = s.GetImageRef(), s.GetLogPath()
	for _, m := range s.GetMounts() {
		c.Mounts = append(c.Mounts, observed.Mount{ContainerPath: m.ContainerPath,
			RecursiveReadOnly: m.RecursiveReadOnly, Image: m.GetImage().GetImage()})
	}
	if user := s.GetUser().GetLinux(); user != nil {
		c.User = &observed.User{UID: user.Uid, GID: user.Gid, SupplementalGroups: user.SupplementalGroups}
	}
	if c.ImageID == "" {
		c.ImageID = s.GetImageId()
	}
	if c.Image == "" {
		c.Image = s.GetImage().GetUserSpecifiedImage()
	}
}

// Watch implements runtime.Pods with the runtime's stream of container events.
func (r *Runtime) Watch(ctx context.Context, notify func(runtime.Event)) error {
	stream, err := r.runtime.GetContainerEvents(ctx, &cri.GetEventsRequest{})
	if err != nil {
		return failed("opening the event stream", err)
	}
	for {
		e, err := stream.Recv()
		if err != nil {
			return failed("reading the event stream", err)
		}
		if uid := e.GetPodSandboxStatus().GetMetadata().GetUid(); uid != "" {
			notify(runtime.Event{PodUID: uid, ContainerID: e.ContainerId})
		}
	}
}

func state(s cri.ContainerState) observed.ContainerState {
	switch s {
	case cri.ContainerState_CONTAINER_CREATED:
		return observed.Created
	case cri.ContainerState_CONTAINER_RUNNING:
		return observed.Running
	case cri.ContainerState_CONTAINER_EXITED:
		return observed.Exited
	}
	return observed.Unknown
}

// instant converts nanoseconds since 1970; 0 and less mean that the event has not happened.
func instant(ns int64) time.Time {
	if ns <= 0 {
		return time.Time{}
	}
	return time.Unix(0, ns)
}

// RunSandbox implements runtime.Sandboxes.
func (r *Runtime) RunSandbox(ctx context.Context, config *cri.PodSandboxConfig, handler string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, createFor)
	defer cancel()
	answer, err := r.runtime.RunPodSandbox(ctx, &cri.RunPodSandboxRequest{Config: config, RuntimeHandler: handler})
	if err != nil {
		return "", failed("creating a sandbox", err)
	}
	return answer.PodSandboxId, nil
}

// StopSandbox implements runtime.Sandboxes.
func (r *Runtime) StopSandbox(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, createFor)
	defer cancel()
	_, err := r.runtime.StopPodSandbox(ctx, &cri.StopPodSandboxRequest{PodSandboxId: id})
	return ignoreNotFound("stopping sandbox "+id, err)
}

// RemoveSandbox implements runtime.Sandboxes. If the removal fails, it first removes the sandbox's containers one
// by one, as RemoveContainer does.
func (r *Runtime) RemoveSandbox(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, createFor)
	defer cancel()
	err := r.removeSandbox(ctx, id)
	if err == nil {
		return nil
	}
	if emptied := r.removeContainersOf(ctx, id); emptied != nil {
		return errors.Join(err, emptied)
	}
	return r.removeSandbox(ctx, id)
}

func (r *Runtime) removeSandbox(ctx context.Context, id string) error {
	_, err := r.runtime.RemovePodSandbox(ctx, &cri.RemovePodSandboxRequest{PodSandboxId: id})
	return ignoreNotFound("removing sandbox "+id, err)
}

func (r *Runtime) removeContainersOf(ctx context.Context, sandboxID string) error {
	list, err := r.runtime.ListContainers(ctx,
		&cri.ListContainersRequest{Filter: &cri.ContainerFilter{PodSandboxId: sandboxID}})
	if err != nil {
		return failed("listing the containers of sandbox "+sandboxID, err)
	}
	var problems []error
	for _, c := range list.Containers {
		problems = append(problems, r.RemoveContainer(ctx, c.Id))
	}
	return errors.Join(problems...)
}
