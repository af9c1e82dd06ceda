package podspec

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/utils/ptr"
)

// POD-002 POD-092 POD-148 POD-151: the whole of a defaulted Pod, so that no default goes unnoticed.
func TestSetDefaultsOfNginx(t *testing.T) {
	got := nginx()
	SetDefaults(got)
	want := &corev1.PodSpec{
		Containers: []corev1.Container{{
			Name: "nginx", Image: "nginx:1.14.2", ImagePullPolicy: corev1.PullIfNotPresent,
			Ports:                    []corev1.ContainerPort{{ContainerPort: 80, Protocol: corev1.ProtocolTCP}},
			TerminationMessagePath:   "/dev/termination-log",
			TerminationMessagePolicy: corev1.TerminationMessageReadFile,
		}},
		DNSPolicy:                     corev1.DNSClusterFirst,
		EnableServiceLinks:            ptr.To(true),
		RestartPolicy:                 corev1.RestartPolicyAlways,
		SchedulerName:                 "default-scheduler",
		SecurityContext:               &corev1.PodSecurityContext{},
		TerminationGracePeriodSeconds: ptr.To[int64](30),
	}
	if !equal(got, want) {
		t.Error(diff.Diff(want, got))
	}
}

// DEP-009: a template is defaulted like a Pod, except for what only its Pods decide.
func TestSetTemplateDefaults(t *testing.T) {
	spec := nginx()
	spec.HostNetwork = true
	spec.Containers[0].Resources.Limits = quantities("cpu", "1")
	template := &corev1.PodTemplateSpec{Spec: *spec}
	SetTemplateDefaults(template)
	c := template.Spec.Containers[0]
	if c.Resources.Requests != nil || c.Ports[0].HostPort != 0 || template.Spec.EnableServiceLinks != nil {
		t.Errorf("the template got what belongs to its Pods: %+v", template.Spec)
	}
	if template.Spec.RestartPolicy != corev1.RestartPolicyAlways || c.ImagePullPolicy != corev1.PullIfNotPresent {
		t.Errorf("the template was not defaulted: %+v", template.Spec)
	}
}

func TestPullPolicy(t *testing.T) {
	rows := map[string]corev1.PullPolicy{
		"nginx":                              corev1.PullAlways,
		"nginx:latest":                       corev1.PullAlways,
		"nginx:1.14.2":                       corev1.PullIfNotPresent,
		"localhost:5000/nginx":               corev1.PullAlways,
		"localhost:5000/nginx:1":             corev1.PullIfNotPresent,
		"example.com/team/nginx:latest":      corev1.PullAlways,
		"Example.com/nginx":                  corev1.PullAlways,
		"nginx@sha256:0123":                  corev1.PullIfNotPresent,
		"nginx:latest@sha256:0123":           corev1.PullAlways,
		"localhost/nginx":                    corev1.PullAlways,
		"te$am/nginx":                        corev1.PullIfNotPresent,
		"team//nginx":                        corev1.PullIfNotPresent,
		"example.com:5000/a/b@sha256:0123":   corev1.PullIfNotPresent,
		"Nginx":                              corev1.PullIfNotPresent,
		"team/Nginx":                         corev1.PullIfNotPresent,
		"":                                   corev1.PullIfNotPresent,
		"example.com//nginx":                 corev1.PullIfNotPresent,
		"docker.io/library/busybox:1.28":     corev1.PullIfNotPresent,
		"docker.io/library/busybox":          corev1.PullAlways,
		"gcr.io/google-containers/pause:3.1": corev1.PullIfNotPresent,
	}
	for image, want := range rows {
		spec := nginx()
		spec.Containers[0].Image = image
		SetDefaults(spec)
		if got := spec.Containers[0].ImagePullPolicy; got != want {
			t.Errorf("pull policy of %q is %s, want %s", image, got, want)
		}
	}
}

// defaulted is one field: how it is left out, and what it reads afterwards.
type defaulted struct {
	name   string
	change func(*corev1.PodSpec)
	read   func(*corev1.PodSpec) any
	want   any
}

func TestSetDefaults(t *testing.T) {
	liveness := func(s *corev1.PodSpec) *corev1.Probe { return s.Containers[0].LivenessProbe }
	probe := func(h corev1.ProbeHandler) func(*corev1.PodSpec) {
		return first(func(c *corev1.Container) { c.LivenessProbe = &corev1.Probe{ProbeHandler: h} })
	}
	resources := func(s *corev1.PodSpec) any { return s.Containers[0].Resources.Requests }
	hook := &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{HTTPGet: httpGet(80)},
		PostStart: &corev1.LifecycleHandler{HTTPGet: httpGet(80)}}
	rows := []defaulted{
		{"POD-148 probe", probe(execProbe().ProbeHandler), func(s *corev1.PodSpec) any { return *liveness(s) },
			corev1.Probe{ProbeHandler: execProbe().ProbeHandler, TimeoutSeconds: 1, PeriodSeconds: 10,
				SuccessThreshold: 1, FailureThreshold: 3}},
		{"readiness probe", first(func(c *corev1.Container) { c.ReadinessProbe = execProbe() }),
			func(s *corev1.PodSpec) any { return s.Containers[0].ReadinessProbe.PeriodSeconds }, int32(10)},
		{"startup probe", first(func(c *corev1.Container) { c.StartupProbe = execProbe() }),
			func(s *corev1.PodSpec) any { return s.Containers[0].StartupProbe.FailureThreshold }, int32(3)},
		{"http path", probe(corev1.ProbeHandler{HTTPGet: httpGet(80)}),
			func(s *corev1.PodSpec) any { return liveness(s).HTTPGet.Path }, "/"},
		{"http scheme", probe(corev1.ProbeHandler{HTTPGet: httpGet(80)}),
			func(s *corev1.PodSpec) any { return liveness(s).HTTPGet.Scheme }, corev1.URISchemeHTTP},
		{"grpc service", probe(corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: 1}}),
			func(s *corev1.PodSpec) any { return *liveness(s).GRPC.Service }, ""},
		{"hook before the end", first(func(c *corev1.Container) { c.Lifecycle = hook.DeepCopy() }),
			func(s *corev1.PodSpec) any { return s.Containers[0].Lifecycle.PreStop.HTTPGet.Scheme },
			corev1.URISchemeHTTP},
		{"hook after the start", first(func(c *corev1.Container) { c.Lifecycle = hook.DeepCopy() }),
			func(s *corev1.PodSpec) any { return s.Containers[0].Lifecycle.PostStart.HTTPGet.Path }, "/"},
		{"SAF-082 requests from limits", first(func(c *corev1.Container) {
			c.Resources = corev1.ResourceRequirements{Limits: quantities("cpu", "1", "memory", "1Gi"),
				Requests: quantities("cpu", "500m")}
		}), resources, quantities("cpu", "500m", "memory", "1Gi")},
		{"no requests without limits", func(*corev1.PodSpec) {}, resources, corev1.ResourceList(nil)},
		{"SAF-082 requests of init containers",
			withInit(corev1.Container{Name: "i", Resources: corev1.ResourceRequirements{Limits: quantities("cpu",
				"1")}}),
			func(s *corev1.PodSpec) any { return s.InitContainers[0].Resources.Requests }, quantities("cpu", "1")},
		{"a fraction of a thousandth", first(func(c *corev1.Container) {
			c.Resources.Requests = quantities("cpu",
				"1u")
		}), resources, quantities("cpu", "1m")},
		{"requests of the Pod from its limits", func(s *corev1.PodSpec) {
			s.Resources = &corev1.ResourceRequirements{Limits: quantities("cpu", "2", "memory", "1Gi")}
			s.Containers[0].Resources.Requests = quantities("cpu", "1")
		}, func(s *corev1.PodSpec) any { return s.Resources.Requests }, quantities("cpu", "1", "memory", "1Gi")},
		{"no requests of the Pod without limits",
			func(s *corev1.PodSpec) { s.Resources = &corev1.ResourceRequirements{} },
			func(s *corev1.PodSpec) any { return s.Resources.Requests }, corev1.ResourceList(nil)},
		{"version of a field reference", fieldRef("metadata.name"),
			func(s *corev1.PodSpec) any { return s.Containers[0].Env[0].ValueFrom.FieldRef.APIVersion }, "v1"},
		{"host port in the host's network", func(s *corev1.PodSpec) { s.HostNetwork = true },
			func(s *corev1.PodSpec) any { return s.Containers[0].Ports[0].HostPort }, int32(80)},
		{"no host port elsewhere", func(*corev1.PodSpec) {},
			func(s *corev1.PodSpec) any { return s.Containers[0].Ports[0].HostPort }, int32(0)},
		{"service account by its old name", func(s *corev1.PodSpec) { s.DeprecatedServiceAccount = "a" },
			func(s *corev1.PodSpec) any { return s.ServiceAccountName }, "a"},
		{"service account by both names", func(s *corev1.PodSpec) {
			s.DeprecatedServiceAccount,
				s.ServiceAccountName = "a", "b"
		}, func(s *corev1.PodSpec) any { return s.DeprecatedServiceAccount }, "b"},
		{"negative grace", func(s *corev1.PodSpec) { s.TerminationGracePeriodSeconds = ptr.To[int64](-1) },
			func(s *corev1.PodSpec) any { return *s.TerminationGracePeriodSeconds }, int64(1)},
		{"no grace", func(s *corev1.PodSpec) { s.TerminationGracePeriodSeconds = ptr.To[int64](0) },
			func(s *corev1.PodSpec) any { return *s.TerminationGracePeriodSeconds }, int64(0)},
		{"ephemeral container", func(s *corev1.PodSpec) {
			s.EphemeralContainers = []corev1.EphemeralContainer{
				{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Image: "busybox"}}}
		}, func(s *corev1.PodSpec) any { return s.EphemeralContainers[0].ImagePullPolicy }, corev1.PullAlways},
		{"overhead", func(s *corev1.PodSpec) { s.Overhead = quantities("cpu", "1u") },
			func(s *corev1.PodSpec) any { return s.Overhead }, quantities("cpu", "1m")},
	}
	for _, r := range append(rows, volumeDefaults()...) {
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

func volumeDefaults() []defaulted {
	source := func(s *corev1.PodSpec) corev1.VolumeSource { return s.Volumes[0].VolumeSource }
	projection := func(p corev1.VolumeProjection) func(*corev1.PodSpec) {
		return withVolume(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			Sources: []corev1.VolumeProjection{p}}})
	}
	files := []corev1.DownwardAPIVolumeFile{{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}}
	return []defaulted{
		{"volume of nothing", withVolume(corev1.VolumeSource{}), func(s *corev1.PodSpec) any { return source(s) },
			corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		{"hostPath type", withVolume(corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{}}),
			func(s *corev1.PodSpec) any { return *source(s).HostPath.Type }, corev1.HostPathUnset},
		{"mode of a Secret", withVolume(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{}}),
			func(s *corev1.PodSpec) any { return *source(s).Secret.DefaultMode }, int32(0o644)},
		{"mode of a ConfigMap", withVolume(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}),
			func(s *corev1.PodSpec) any { return *source(s).ConfigMap.DefaultMode }, int32(0o644)},
		{"mode of the downward API", withVolume(corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{}}),
			func(s *corev1.PodSpec) any { return *source(s).DownwardAPI.DefaultMode }, int32(0o644)},
		{"version in the downward API",
			withVolume(corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: files}}),
			func(s *corev1.PodSpec) any { return source(s).DownwardAPI.Items[0].FieldRef.APIVersion }, "v1"},
		{"mode of a projected volume", projection(corev1.VolumeProjection{}),
			func(s *corev1.PodSpec) any { return *source(s).Projected.DefaultMode }, int32(0o644)},
		{"life of a token",
			projection(corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{}}),
			func(s *corev1.PodSpec) any {
				return *source(s).Projected.Sources[0].ServiceAccountToken.ExpirationSeconds
			}, int64(3600)},
		{"life of a certificate",
			projection(corev1.VolumeProjection{PodCertificate: &corev1.PodCertificateProjection{}}),
			func(s *corev1.PodSpec) any {
				return *source(s).Projected.Sources[0].PodCertificate.MaxExpirationSeconds
			}, int32(86400)},
		{"version in a projection",
			projection(corev1.VolumeProjection{DownwardAPI: &corev1.DownwardAPIProjection{Items: files}}),
			func(s *corev1.PodSpec) any {
				return source(s).Projected.Sources[0].DownwardAPI.Items[0].FieldRef.APIVersion
			}, "v1"},
		{"pull policy of an image", withVolume(corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "a"}}),
			func(s *corev1.PodSpec) any { return source(s).Image.PullPolicy }, corev1.PullAlways},
		{"mode of a claim", claimTemplate(func(*corev1.PersistentVolumeClaimSpec) {}),
			func(s *corev1.PodSpec) any { return *source(s).Ephemeral.VolumeClaimTemplate.Spec.VolumeMode },
			corev1.PersistentVolumeFilesystem},
		{"iscsi", withVolume(corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{}}),
			func(s *corev1.PodSpec) any { return source(s).ISCSI.ISCSIInterface }, "default"},
		{"rbd", withVolume(corev1.VolumeSource{RBD: &corev1.RBDVolumeSource{}}),
			func(s *corev1.PodSpec) any { return *source(s).RBD },
			corev1.RBDVolumeSource{RBDPool: "rbd", RadosUser: "admin", Keyring: "/etc/ceph/keyring"}},
		{"azure disk", withVolume(corev1.VolumeSource{AzureDisk: &corev1.AzureDiskVolumeSource{}}),
			func(s *corev1.PodSpec) any { return *source(s).AzureDisk },
			corev1.AzureDiskVolumeSource{CachingMode: ptr.To(corev1.AzureDataDiskCachingReadWrite),
				Kind: ptr.To(corev1.AzureSharedBlobDisk), FSType: ptr.To("ext4"), ReadOnly: ptr.To(false)}},
		{"scaleio", withVolume(corev1.VolumeSource{ScaleIO: &corev1.ScaleIOVolumeSource{}}),
			func(s *corev1.PodSpec) any { return *source(s).ScaleIO },
			corev1.ScaleIOVolumeSource{StorageMode: "ThinProvisioned", FSType: "xfs"}},
	}
}
