package steps

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"keelson.dev/kit/podview"
	"keelson.dev/services/nodeagent/internal/containerconfig"
	"keelson.dev/services/nodeagent/internal/downward"
	"keelson.dev/services/nodeagent/internal/podstate"
)

// Preparation returns the steps that prepare the node for a Pod, in the order in which they are set up.
func (s *Steps) Preparation() []Step {
	return []Step{
		{Name: "claims", SetUp: s.awaitClaims, Reason: reasonUnallocated},
		{Name: "objects", SetUp: s.watchObjects, TearDown: s.forgetObjects},
		{Name: "folders", SetUp: s.makeFolders, TearDown: s.removeFolders},
		{Name: "cpus", SetUp: s.giveCPUs, TearDown: s.freeCPUs, Reason: podstate.ReasonUnexpected},
		{Name: "cgroup", SetUp: s.makeCgroup, TearDown: s.removeCgroup, AtMax: true},
		{Name: "volumes", SetUp: s.setUpVolumes, TearDown: s.takeVolumesDown},
		{Name: "devices", SetUp: s.allocateDevices, TearDown: s.freeDevices, Reason: podstate.ReasonUnexpected},
	}
}

// reasonUnallocated is the reason of the event about a Pod whose claims are not allocated.
const reasonUnallocated = "FailedPrepareDynamicResources"

// awaitClaims keeps a Pod that claims devices from running without them, in any state of its claims: the node prepares
// none.
func (s *Steps) awaitClaims(ctx context.Context, pod *corev1.Pod) (time.Time, error) {
	claims := map[string]*resourcev1.ResourceClaim{}
	for i := range pod.Spec.ResourceClaims {
		name, known := podview.ResourceClaimOf(pod, &pod.Spec.ResourceClaims[i])
		if !known || name == "" {
			continue
		}
		claim, err := s.Objects.ResourceClaim(ctx, pod.Namespace, name)
		switch {
		case err == nil:
			claims[name] = claim
		case !apierrors.IsNotFound(err):
			return time.Time{}, fmt.Errorf("reading ResourceClaim %s: %w", name, err)
		}
	}
	why := podview.LacksDevices(pod, func(name string) *resourcev1.ResourceClaim { return claims[name] })
	if why != "" {
		return time.Time{}, errors.New(why)
	}
	return time.Time{}, nil
}

func (s *Steps) watchObjects(_ context.Context, pod *corev1.Pod) (time.Time, error) {
	s.Objects.Register(pod)
	return time.Time{}, nil
}

func (s *Steps) forgetObjects(_ context.Context, pod *corev1.Pod) error {
	s.Objects.Unregister(pod.UID)
	return nil
}

// makeFolders creates the Pod's folders, with the record of its own user IDs if it has any.
func (s *Steps) makeFolders(_ context.Context, pod *corev1.Pod) (time.Time, error) {
	if err := s.Files.Make(pod); err != nil {
		return time.Time{}, err
	}
	if containerconfig.OwnUsers(pod) {
		if _, err := s.Ranges.Assign(pod.UID); err != nil {
			return time.Time{}, err
		}
	}
	return time.Time{}, nil
}

// removeFolders removes the Pod's folders, and then frees its user IDs, to which no file belongs any more.
func (s *Steps) removeFolders(_ context.Context, pod *corev1.Pod) error {
	if err := s.Files.Remove(pod.UID); err != nil {
		return err
	}
	s.Ranges.Release(pod.UID)
	s.Gone()
	return nil
}

// giveCPUs makes sure that the Pod's own CPUs are on disk before anything uses them.
func (s *Steps) giveCPUs(_ context.Context, pod *corev1.Pod) (time.Time, error) {
	return time.Time{}, s.CPUs.SetUp(pod)
}

func (s *Steps) freeCPUs(_ context.Context, pod *corev1.Pod) error { return s.CPUs.TearDown(pod.UID) }

// cpus returns the CPUs of a container.
func (s *Steps) cpus(pod *corev1.Pod, container *corev1.Container) containerconfig.CPUs {
	set, exclusive := s.CPUs.Container(pod.UID, container.Name)
	return containerconfig.CPUs{Set: set, Exclusive: exclusive}
}

func (s *Steps) makeCgroup(_ context.Context, pod *corev1.Pod) (time.Time, error) {
	return time.Time{}, s.ResizeCgroup(pod)
}

func (s *Steps) removeCgroup(_ context.Context, pod *corev1.Pod) error {
	return s.Cgroups.RemovePod(pod.UID)
}

func (s *Steps) setUpVolumes(ctx context.Context, pod *corev1.Pod) (time.Time, error) {
	volumes, err := s.Volumes.SetUp(ctx, downward.View{Pod: pod, HostIPs: s.HostIPs()}, s.Allocatable())
	if err != nil {
		return time.Time{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.volumes[pod.UID] = volumes
	return volumes.RefreshAt(), nil
}

// Kill ends all processes of a container instance through its cgroup.
func (s *Steps) Kill(pod *corev1.Pod, containerID string) error {
	return s.Cgroups.KillContainer(pod, containerID)
}

func (s *Steps) takeVolumesDown(ctx context.Context, pod *corev1.Pod) error {
	if err := s.Volumes.TearDown(ctx, pod.UID); err != nil {
		return fmt.Errorf("taking volumes down: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.volumes, pod.UID)
	return nil
}

// Forget removes the logs, which outlive the containers.
func (s *Steps) Forget(_ context.Context, pod *corev1.Pod) error { return s.Files.RemoveLogs(pod) }
