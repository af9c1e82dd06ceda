package steps

import (
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"keelson.dev/services/nodeagent/internal/containerconfig"
	"keelson.dev/services/nodeagent/internal/deviceplugin"
	"keelson.dev/services/nodeagent/internal/podenv"
)

func (s *Steps) allocateDevices(ctx context.Context, pod *corev1.Pod) (time.Time, error) {
	return time.Time{}, s.Devices.SetUp(ctx, pod)
}

func (s *Steps) freeDevices(_ context.Context, pod *corev1.Pod) error {
	return s.Devices.TearDown(pod.UID)
}

// withDevices adds what device plugins give a container. The Pod's own settings come later and win.
func withDevices(in containerconfig.ContainerInput, given deviceplugin.Grant) containerconfig.ContainerInput {
	env := make([]podenv.Variable, 0, len(given.Envs)+len(in.Env.Env))
	for _, name := range slices.Sorted(maps.Keys(given.Envs)) {
		env = append(env, podenv.Variable{Name: name, Value: given.Envs[name]})
	}
	in.Env.Env = append(env, in.Env.Env...)
	mounts := make([]*cri.Mount, 0, len(given.Mounts)+len(in.Mounts))
	for _, m := range given.Mounts {
		mounts = append(mounts, &cri.Mount{HostPath: m.Host, ContainerPath: m.Container, Readonly: m.ReadOnly})
	}
	in.Mounts = append(mounts, in.Mounts...)
	for _, d := range given.Nodes {
		in.Devices = append(in.Devices, &cri.Device{HostPath: d.Host, ContainerPath: d.Container,
			Permissions: d.Permissions})
	}
	for _, name := range given.CDI {
		in.CDIDevices = append(in.CDIDevices, &cri.CDIDevice{Name: name})
	}
	in.Annotations = given.Annotations
	return in
}
