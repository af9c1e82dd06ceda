package podspec

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// What a client has set is kept, also where it differs from the default.
func TestDefaultsKeepWhatIsSet(t *testing.T) {
	get := &corev1.HTTPGetAction{Path: "/p", Port: intstr.FromInt32(1), Scheme: "HTTPS"}
	name := &corev1.ObjectFieldSelector{APIVersion: "v2", FieldPath: "metadata.name"}
	files := []corev1.DownwardAPIVolumeFile{{Path: "f", FieldRef: name}}
	probe := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: get}, TimeoutSeconds: 2, PeriodSeconds: 3,
		SuccessThreshold: 4, FailureThreshold: 5}
	grpc := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: 1, Service: ptr.To("s")}},
		TimeoutSeconds: 2, PeriodSeconds: 3, SuccessThreshold: 4, FailureThreshold: 5}
	c := corev1.Container{Name: "c", Image: "c:latest", ImagePullPolicy: "Never", TerminationMessagePath: "/m",
		TerminationMessagePolicy: "FallbackToLogsOnError", LivenessProbe: probe, ReadinessProbe: grpc,
		Ports:     []corev1.ContainerPort{{ContainerPort: 1, HostPort: 2, Protocol: "UDP"}},
		Env:       []corev1.EnvVar{{Name: "A", ValueFrom: &corev1.EnvVarSource{FieldRef: name}}},
		Lifecycle: &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{HTTPGet: get}},
		Resources: corev1.ResourceRequirements{Limits: quantities("cpu", "2"), Requests: quantities("cpu", "1")}}
	mode := ptr.To[int32](0o400)
	spec := &corev1.PodSpec{
		Containers: []corev1.Container{c}, DNSPolicy: "Default", EnableServiceLinks: ptr.To(false), HostNetwork: true,
		RestartPolicy: "Never", SchedulerName: "s", TerminationGracePeriodSeconds: ptr.To[int64](1),
		ServiceAccountName: "a", DeprecatedServiceAccount: "a",
		SecurityContext: &corev1.PodSecurityContext{RunAsUser: ptr.To[int64](1)},
		Resources: &corev1.ResourceRequirements{Limits: quantities("cpu", "4", "memory", "2"),
			Requests: quantities("cpu", "3", "memory", "1")},
		Volumes: []corev1.Volume{
			{VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{
				Type: ptr.To(corev1.HostPathFile)}}},
			{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{DefaultMode: mode}}},
			{VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{DefaultMode: mode}}},
			{VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{DefaultMode: mode,
				Items: files}}},
			{VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "r",
				PullPolicy: "Never"}}},
			{VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{DefaultMode: mode,
				Sources: []corev1.VolumeProjection{
					{DownwardAPI: &corev1.DownwardAPIProjection{Items: files}},
					{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{
						ExpirationSeconds: ptr.To[int64](600)}},
					{PodCertificate: &corev1.PodCertificateProjection{MaxExpirationSeconds: ptr.To[int32](3600)}},
				}}}},
			{VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
				VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: corev1.PersistentVolumeClaimSpec{
					VolumeMode: ptr.To(corev1.PersistentVolumeBlock)}}}}},
			{VolumeSource: corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{ISCSIInterface: "i"}}},
			{VolumeSource: corev1.VolumeSource{RBD: &corev1.RBDVolumeSource{RBDPool: "p", RadosUser: "u",
				Keyring: "k"}}},
			{VolumeSource: corev1.VolumeSource{AzureDisk: &corev1.AzureDiskVolumeSource{FSType: ptr.To("xfs"),
				CachingMode: ptr.To(corev1.AzureDataDiskCachingNone), Kind: ptr.To(corev1.AzureManagedDisk),
				ReadOnly: ptr.To(true)}}},
			{VolumeSource: corev1.VolumeSource{ScaleIO: &corev1.ScaleIOVolumeSource{StorageMode: "ThickProvisioned",
				FSType: "ext4"}}},
		},
	}
	before := spec.DeepCopy()
	SetDefaults(spec)
	if !equal(before, spec) {
		t.Error(diff.Diff(before, spec))
	}
}

// The requests that a Pod and its containers get from their limits.
func TestRequestsFromLimits(t *testing.T) {
	pod := func(limits, requests corev1.ResourceList) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) {
			s.Resources = &corev1.ResourceRequirements{Limits: limits, Requests: requests}
		}
	}
	ofPod := func(s *corev1.PodSpec) corev1.ResourceList { return s.Resources.Requests }
	containers := func(lists ...corev1.ResourceList) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) {
			s.Containers = nil
			for _, list := range lists {
				s.Containers = append(s.Containers, corev1.Container{
					Resources: corev1.ResourceRequirements{Requests: list}})
			}
		}
	}
	all := func(changes ...func(*corev1.PodSpec)) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) {
			for _, change := range changes {
				change(s)
			}
		}
	}
	for _, r := range []struct {
		name   string
		change func(*corev1.PodSpec)
		read   func(*corev1.PodSpec) corev1.ResourceList
		want   corev1.ResourceList
	}{
		{"the sum of the containers", all(pod(quantities("memory", "9"), nil),
			containers(quantities("cpu", "1", "memory", "2"), quantities("cpu", "2"))), ofPod,
			quantities("cpu", "3", "memory", "2")},
		{"a request of the Pod's own", all(pod(quantities("cpu", "9"), quantities("cpu", "5")),
			containers(quantities("cpu", "1"))), ofPod, quantities("cpu", "5")},
		{"huge pages, whatever the containers request", all(pod(quantities("hugepages-2Mi", "8Mi"), nil),
			containers(quantities("hugepages-2Mi", "2Mi"))), ofPod, quantities("hugepages-2Mi", "8Mi")},
		{"resources that a Pod as a whole has not", all(pod(quantities("cpu", "9", "example.com/a", "1"), nil),
			containers(quantities("ephemeral-storage", "1"))), ofPod, quantities("cpu", "9")},
		{"nothing that a Pod as a whole has", pod(quantities("example.com/a", "1"), nil), ofPod, nil},
		{"requests without limits", all(pod(nil, quantities("memory", "1")), containers(quantities("cpu", "1"))), ofPod,
			quantities("memory", "1")},
		{"the Pod's limits, rounded up", pod(quantities("cpu", "1u"), nil), ofPod, quantities("cpu", "1m")},
		{"SAF-082 a container's limits, rounded up", first(func(c *corev1.Container) {
			c.Resources.Limits = quantities("cpu", "1500u")
		}), func(s *corev1.PodSpec) corev1.ResourceList { return s.Containers[0].Resources.Requests },
			quantities("cpu", "2m")},
		{"SAF-082 a request of zero", first(func(c *corev1.Container) {
			c.Resources.Limits, c.Resources.Requests = quantities("cpu", "1"), quantities("cpu", "0")
		}), func(s *corev1.PodSpec) corev1.ResourceList { return s.Containers[0].Resources.Requests },
			quantities("cpu", "0")},
		{"the limits of a claim, rounded up", claimTemplate(func(s *corev1.PersistentVolumeClaimSpec) {
			s.Resources.Limits = quantities("storage", "1u")
		}), func(s *corev1.PodSpec) corev1.ResourceList {
			return s.Volumes[0].Ephemeral.VolumeClaimTemplate.Spec.Resources.Limits
		}, quantities("storage", "1m")},
		{"the requests of a claim, rounded up", claimTemplate(func(s *corev1.PersistentVolumeClaimSpec) {
			s.Resources.Requests = quantities("storage", "1u")
		}), func(s *corev1.PodSpec) corev1.ResourceList {
			return s.Volumes[0].Ephemeral.VolumeClaimTemplate.Spec.Resources.Requests
		}, quantities("storage", "1m")},
	} {
		t.Run(r.name, func(t *testing.T) {
			spec := nginx()
			r.change(spec)
			SetDefaults(spec)
			if got := r.read(spec); !apiequality.Semantic.DeepEqual(got, r.want) {
				t.Errorf("got %v, want %v", got, r.want)
			}
		})
	}
}

// DEP-009: what a template shares with the Pods made from it, and what is left to them, field by field.
func TestTemplateDefaults(t *testing.T) {
	limits := quantities("cpu", "1")
	template := &corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		HostNetwork: true, TerminationGracePeriodSeconds: ptr.To[int64](-1),
		Resources: &corev1.ResourceRequirements{Limits: limits.DeepCopy()},
		InitContainers: []corev1.Container{{Image: "i", Ports: []corev1.ContainerPort{{ContainerPort: 1}},
			Resources: corev1.ResourceRequirements{Limits: limits.DeepCopy()}}},
		Volumes: []corev1.Volume{{Name: "v"}}, DeprecatedServiceAccount: "a"}}
	SetTemplateDefaults(template)
	want := corev1.PodSpec{
		HostNetwork: true, TerminationGracePeriodSeconds: ptr.To[int64](-1),
		Resources: &corev1.ResourceRequirements{Limits: limits},
		InitContainers: []corev1.Container{{Image: "i", ImagePullPolicy: "Always",
			Ports:                  []corev1.ContainerPort{{ContainerPort: 1, Protocol: "TCP"}},
			Resources:              corev1.ResourceRequirements{Limits: limits},
			TerminationMessagePath: "/dev/termination-log", TerminationMessagePolicy: "File"}},
		Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
			EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
		ServiceAccountName: "a", DeprecatedServiceAccount: "a", DNSPolicy: "ClusterFirst", RestartPolicy: "Always",
		SchedulerName: "default-scheduler", SecurityContext: &corev1.PodSecurityContext{}}
	if !equal(&template.Spec, &want) {
		t.Error(diff.Diff(&want, &template.Spec))
	}
}

// Quantities finer than a thousandth are rounded up, coarser ones are kept.
func TestRoundUp(t *testing.T) {
	for given, want := range map[string]string{"1n": "1m", "999u": "1m", "1m": "1m", "1001u": "2m", "1": "1", "0": "0",
		"1Gi": "1Gi"} {
		list := quantities("cpu", given)
		roundUp(list)
		if got := list["cpu"]; got.Cmp(resource.MustParse(want)) != 0 {
			t.Errorf("%s is rounded to %s, want %s", given, got.String(), want)
		}
	}
}
