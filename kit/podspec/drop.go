package podspec

import corev1 "k8s.io/api/core/v1"

// DropUnserved clears the fields of alpha features, none of which this cluster serves. The API ignores such fields
// instead of refusing them, so that a manifest written for a newer cluster still runs.
func DropUnserved(spec *corev1.PodSpec) {
	spec.EvictionResponders = nil
	eachContainer(spec, dropFromContainer)
	for i := range spec.EphemeralContainers {
		common := &spec.EphemeralContainers[i].EphemeralContainerCommon
		c := corev1.Container(*common)
		dropFromContainer(&c)
		*common = corev1.EphemeralContainerCommon(c)
	}
	for i := range spec.Volumes {
		dropFromVolume(&spec.Volumes[i].VolumeSource)
	}
}

func dropFromContainer(c *corev1.Container) {
	for i := range c.VolumeMounts {
		c.VolumeMounts[i].BindMountOptions = nil
	}
	for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		if probe == nil {
			continue
		}
		dropFromHTTPGet(probe.HTTPGet)
		if probe.GRPC != nil {
			probe.GRPC.Mode = nil
		}
	}
	if c.Lifecycle == nil {
		return
	}
	c.Lifecycle.StopSignal = nil
	for _, handler := range []*corev1.LifecycleHandler{c.Lifecycle.PostStart, c.Lifecycle.PreStop} {
		if handler != nil {
			dropFromHTTPGet(handler.HTTPGet)
		}
	}
}

func dropFromHTTPGet(action *corev1.HTTPGetAction) {
	if action != nil {
		action.Protocol = nil
	}
}

func dropFromVolume(source *corev1.VolumeSource) {
	if source.EmptyDir != nil {
		source.EmptyDir.Mode = nil
	}
	if source.Secret != nil {
		source.Secret.DefaultUser = nil
		dropUsers(source.Secret.Items)
	}
	if source.ConfigMap != nil {
		source.ConfigMap.DefaultUser = nil
		dropUsers(source.ConfigMap.Items)
	}
	if source.DownwardAPI != nil {
		source.DownwardAPI.DefaultUser = nil
		dropFileUsers(source.DownwardAPI.Items)
	}
	if source.Projected != nil {
		dropFromProjected(source.Projected)
	}
}

func dropFromProjected(projected *corev1.ProjectedVolumeSource) {
	projected.DefaultUser = nil
	for i := range projected.Sources {
		source := &projected.Sources[i]
		if source.Secret != nil {
			dropUsers(source.Secret.Items)
		}
		if source.ConfigMap != nil {
			dropUsers(source.ConfigMap.Items)
		}
		if source.DownwardAPI != nil {
			dropFileUsers(source.DownwardAPI.Items)
		}
		if source.ServiceAccountToken != nil {
			source.ServiceAccountToken.User = nil
		}
		if source.ClusterTrustBundle != nil {
			source.ClusterTrustBundle.User = nil
		}
		if source.PodCertificate != nil {
			source.PodCertificate.User = nil
		}
	}
}

func dropUsers(items []corev1.KeyToPath) {
	for i := range items {
		items[i].User = nil
	}
}

func dropFileUsers(items []corev1.DownwardAPIVolumeFile) {
	for i := range items {
		items[i].User = nil
	}
}
