package steps

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/events"
	"keelson.dev/services/nodeagent/internal/containerconfig"
	"keelson.dev/services/nodeagent/internal/downward"
	"keelson.dev/services/nodeagent/internal/podenv"
	"keelson.dev/services/nodeagent/internal/runtime"
	"keelson.dev/services/nodeagent/internal/userns"
	"keelson.dev/services/nodeagent/internal/volume"
)

// Handler returns the name of the runtime handler for the Pod, from the Pod's runtime class; empty is the default.
func (s *Steps) Handler(ctx context.Context, pod *corev1.Pod) (string, error) {
	class := ptr.Deref(pod.Spec.RuntimeClassName, "")
	if class == "" {
		return "", nil
	}
	handler, err := s.Objects.RuntimeHandler(ctx, class)
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.classes[class] = handler
	}
	return handler, err
}

// able returns the features of the Pod's runtime handler. The class is read once, and only for a Pod that depends
// on these: an API that does not answer keeps no other Pod from restarting its containers.
func (s *Steps) able(ctx context.Context, pod *corev1.Pod) (runtime.Handler, error) {
	if !reliesOnHandler(pod) {
		return runtime.Handler{}, nil
	}
	s.mu.Lock()
	handler, known := s.classes[ptr.Deref(pod.Spec.RuntimeClassName, "")]
	s.mu.Unlock()
	if !known {
		var err error
		if handler, err = s.Handler(ctx, pod); err != nil {
			return runtime.Handler{}, err
		}
	}
	return s.Able(handler), nil
}

// Sandbox returns the configuration of a Pod's sandbox.
func (s *Steps) Sandbox(ctx context.Context, pod *corev1.Pod, attempt uint32) (*cri.PodSandboxConfig, error) {
	able, err := s.able(ctx, pod)
	if err != nil {
		return nil, err
	}
	own, err := s.users(pod)
	if err != nil {
		return nil, err
	}
	if _, warning := containerconfig.DNS(pod, s.Node); warning != "" {
		s.Events.Record(pod, "", events.Warning(containerconfig.ReasonDNS, "%s", warning))
	}
	return containerconfig.Sandbox(containerconfig.SandboxInput{
		Node: s.Node, Pod: pod, Attempt: attempt, LogDir: s.Files.Logs(pod), CgroupParent: s.Cgroups.Parent(pod),
		UserNamespace: own, UserNamespaces: able.UserNamespaces,
	})
}

// users returns the Pod's range of host IDs; nil if it has none of its own.
func (s *Steps) users(pod *corev1.Pod) (*userns.Range, error) {
	if !containerconfig.OwnUsers(pod) {
		return nil, nil
	}
	return s.Ranges.Assign(pod.UID)
}

// Container returns the configuration of a container instance and creates the files that it names.
func (s *Steps) Container(ctx context.Context, in ContainerInput) (*cri.ContainerConfig, error) {
	s.mu.Lock()
	volumes, prepared := s.volumes[in.Pod.UID]
	s.mu.Unlock()
	if !prepared {
		return nil, errors.New("the Pod's volumes are not set up")
	}
	env, err := s.environment(ctx, in)
	if err != nil {
		return nil, err
	}
	able, err := s.able(ctx, in.Pod)
	if err != nil {
		return nil, err
	}
	spec := in.Entry.Spec
	mounts, err := s.Volumes.Mounts(volume.MountRequest{
		Pod: in.Pod, Container: spec, Volumes: volumes, Env: env, Images: in.VolumeImages,
		RecursiveReadOnly: able.RecursiveReadOnlyMounts,
		SELinux:           s.Node.SELinux})
	if err != nil {
		return nil, err
	}
	blocks, err := volume.Devices(spec, volumes)
	if err != nil {
		return nil, err
	}
	files, err := s.files(in)
	if err != nil {
		return nil, err
	}
	own, err := s.users(in.Pod)
	if err != nil {
		return nil, err
	}
	devices, err := s.Devices.Container(ctx, in.Pod, spec)
	if err != nil {
		return nil, err
	}
	return containerconfig.Container(withDevices(containerconfig.ContainerInput{
		Node: s.Node, Pod: in.Pod, Container: spec, Attempt: in.Attempt,
		ImageRef: in.Image.ID, Image: containerconfig.ImageUser{UID: in.Image.UID, Name: in.Image.User},
		Env: env, Mounts: mounts, Devices: blocks, VolumeImages: in.VolumeImages, HostsFile: files.hosts,
		TerminationLog: files.terminationLog, UserNamespace: own, TargetContainerID: in.TargetID,
		CPUs: s.cpus(in.Pod, spec),
	}, devices))
}

// environment resolves the container's variables, command and arguments.
func (s *Steps) environment(ctx context.Context, in ContainerInput) (podenv.Result, error) {
	configMaps, secrets := s.Objects.Environment(ctx, in.Pod, in.Entry.Spec)
	result, err := podenv.Resolve(podenv.Input{
		View:      downward.View{Pod: in.Pod, PodIPs: in.PodIPs, HostIPs: s.HostIPs()},
		Container: in.Entry.Spec, ConfigMaps: configMaps, Secrets: secrets, Files: s.environmentFiles(in),
		Services: s.Services(in.Pod.Namespace), Allocatable: s.Allocatable(),
	})
	if err != nil {
		return podenv.Result{}, err
	}
	for _, skipped := range result.Skipped {
		s.Events.Record(in.Pod, in.Entry.Path, events.Warning("InvalidEnvironmentVariableNames", "%s",
			skipped.Message(in.Pod.Namespace)))
	}
	return result, nil
}

type containerFiles struct{ hosts, terminationLog string }

// files creates the files of one instance on the host.
func (s *Steps) files(in ContainerInput) (containerFiles, error) {
	if err := s.Files.MakeLogs(in.Pod, in.Entry.Spec.Name, in.Attempt); err != nil {
		return containerFiles{}, err
	}
	hosts, err := s.Files.WriteHosts(in.Pod.UID,
		containerconfig.HostsFile(in.Pod, in.PodIPs, s.Node.ClusterDomain, s.HostsFile))
	if err != nil {
		return containerFiles{}, err
	}
	terminationLog, err := s.Files.MakeTerminationLog(in.Pod.UID, in.Entry.Spec.Name, in.Attempt)
	if err != nil {
		return containerFiles{}, fmt.Errorf("container %s: %w", in.Entry.Spec.Name, err)
	}
	return containerFiles{hosts: hosts, terminationLog: terminationLog}, nil
}
