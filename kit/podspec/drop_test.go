package podspec

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// Everything of an alpha feature goes, and nothing beside it.
func TestDropUnserved(t *testing.T) {
	user, mode := ptr.To[int64](1), ptr.To[int32](0o700)
	keys := []corev1.KeyToPath{{Key: "k", Path: "p", User: user}}
	files := []corev1.DownwardAPIVolumeFile{{Path: "p", User: user}}
	h2c := &corev1.HTTPGetAction{Path: "/", Protocol: ptr.To(corev1.HTTPProtocol("h2c"))}
	container := corev1.Container{Name: "c",
		VolumeMounts:   []corev1.VolumeMount{{Name: "v", BindMountOptions: []string{"noexec"}}},
		LivenessProbe:  &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: h2c.DeepCopy()}},
		ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: h2c.DeepCopy()}},
		StartupProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: 1,
			Mode: ptr.To(corev1.GRPCProbeMode("TLS"))}}},
		Lifecycle: &corev1.Lifecycle{StopSignal: ptr.To(corev1.Signal("SIGHUP")),
			PostStart: &corev1.LifecycleHandler{HTTPGet: h2c.DeepCopy()},
			PreStop:   &corev1.LifecycleHandler{HTTPGet: h2c.DeepCopy()}},
	}
	spec := &corev1.PodSpec{
		SchedulingGroup:    &corev1.PodSchedulingGroup{PodGroupName: ptr.To("g")},
		EvictionResponders: []corev1.EvictionResponder{{Name: "r"}},
		Containers:         []corev1.Container{*container.DeepCopy()},
		InitContainers:     []corev1.Container{*container.DeepCopy()},
		EphemeralContainers: []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon(
			*container.DeepCopy())}},
		Volumes: []corev1.Volume{
			{VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: "Memory", Mode: mode}}},
			{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "n", DefaultUser: user,
				Items: clone(keys)}}},
			{VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{DefaultUser: user,
				Items: clone(keys)}}},
			{VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{DefaultUser: user,
				Items: clone(files)}}},
			{VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{DefaultUser: user,
				Sources: []corev1.VolumeProjection{
					{Secret: &corev1.SecretProjection{Items: clone(keys)}},
					{ConfigMap: &corev1.ConfigMapProjection{Items: clone(keys)}},
					{DownwardAPI: &corev1.DownwardAPIProjection{Items: clone(files)}},
					{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "t", User: user}},
					{ClusterTrustBundle: &corev1.ClusterTrustBundleProjection{Path: "b", User: user}},
					{PodCertificate: &corev1.PodCertificateProjection{SignerName: "s", User: user}},
				}}}},
		},
	}
	DropUnserved(spec)

	get := &corev1.HTTPGetAction{Path: "/"}
	served := corev1.Container{Name: "c", VolumeMounts: []corev1.VolumeMount{{Name: "v"}},
		LivenessProbe:  &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: get}},
		ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: get}},
		StartupProbe:   &corev1.Probe{ProbeHandler: corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: 1}}},
		Lifecycle: &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{HTTPGet: get},
			PreStop: &corev1.LifecycleHandler{HTTPGet: get}},
	}
	keys, files = []corev1.KeyToPath{{Key: "k", Path: "p"}}, []corev1.DownwardAPIVolumeFile{{Path: "p"}}
	want := &corev1.PodSpec{
		SchedulingGroup: &corev1.PodSchedulingGroup{PodGroupName: ptr.To("g")},
		Containers:      []corev1.Container{served}, InitContainers: []corev1.Container{served},
		EphemeralContainers: []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon(
			served)}},
		Volumes: []corev1.Volume{
			{VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: "Memory"}}},
			{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "n", Items: keys}}},
			{VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{Items: keys}}},
			{VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: files}}},
			{VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
				Sources: []corev1.VolumeProjection{
					{Secret: &corev1.SecretProjection{Items: keys}},
					{ConfigMap: &corev1.ConfigMapProjection{Items: keys}},
					{DownwardAPI: &corev1.DownwardAPIProjection{Items: files}},
					{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "t"}},
					{ClusterTrustBundle: &corev1.ClusterTrustBundleProjection{Path: "b"}},
					{PodCertificate: &corev1.PodCertificateProjection{SignerName: "s"}},
				}}}},
		},
	}
	if !equal(spec, want) {
		t.Errorf("got  %+v\nwant %+v", spec, want)
	}
}

// What a container leaves out hides nothing of what it has.
func TestDropUnservedOfPart(t *testing.T) {
	h2c := func() *corev1.HTTPGetAction {
		return &corev1.HTTPGetAction{Path: "/", Protocol: ptr.To(corev1.HTTPProtocol("h2c"))}
	}
	probe := func() *corev1.Probe { return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: h2c()}} }
	spec := &corev1.PodSpec{Containers: []corev1.Container{{Name: "none"}, {Name: "ready", ReadinessProbe: probe()},
		{Name: "started", StartupProbe: probe()},
		{Name: "stopped", Lifecycle: &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{HTTPGet: h2c()}}}}}
	DropUnserved(spec)
	for what, action := range map[string]*corev1.HTTPGetAction{
		"the readiness probe": spec.Containers[1].ReadinessProbe.HTTPGet,
		"the startup probe":   spec.Containers[2].StartupProbe.HTTPGet,
		"the preStop hook":    spec.Containers[3].Lifecycle.PreStop.HTTPGet,
	} {
		if action.Protocol != nil {
			t.Errorf("%s keeps its protocol", what)
		}
	}
}

func clone[T any](list []T) []T { return append([]T(nil), list...) }
