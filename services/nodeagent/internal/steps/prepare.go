package steps

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/nodeagent/internal/containerconfig"
	"keelson.dev/services/nodeagent/internal/downward"
)

// Prepare makes the Pod's folders, range of user IDs, cgroup and volumes, in this order, or brings them up to date.
func (s *Steps) Prepare(ctx context.Context, pod *corev1.Pod) (Prepared, error) {
	s.Objects.Register(pod)
	if err := s.Files.Make(pod); err != nil {
		return Prepared{}, err
	}
	if containerconfig.OwnUsers(pod) {
		if _, err := s.Ranges.Assign(pod.UID); err != nil {
			return Prepared{}, err
		}
	}
	if err := s.Cgroups.EnsurePod(pod); err != nil {
		return Prepared{}, err
	}
	volumes, err := s.Volumes.SetUp(ctx, downward.View{Pod: pod, HostIPs: s.HostIPs()}, s.Allocatable())
	if err != nil {
		return Prepared{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.volumes[pod.UID] = volumes
	return Prepared{RefreshAt: volumes.RefreshAt()}, nil
}

// Release takes volumes, folders, cgroup and range away, in this order. It needs nothing but the Pod's UID.
func (s *Steps) Release(ctx context.Context, pod *corev1.Pod) error {
	if err := s.Volumes.TearDown(ctx, pod.UID); err != nil {
		return fmt.Errorf("taking volumes down: %w", err)
	}
	if err := s.Cgroups.RemovePod(pod.UID); err != nil {
		return err
	}
	s.Ranges.Release(pod.UID)
	s.Objects.Unregister(pod.UID)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.volumes, pod.UID)
	return nil
}

// Forget removes the logs, which outlive the containers.
func (s *Steps) Forget(_ context.Context, pod *corev1.Pod) error { return s.Files.RemoveLogs(pod) }
