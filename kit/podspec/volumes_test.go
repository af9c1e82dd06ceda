package podspec

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

var named = corev1.LocalObjectReference{Name: "n"}

func claimTemplate(change func(*corev1.PersistentVolumeClaimSpec)) func(*corev1.PodSpec) {
	spec := corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: quantities("storage", "1Gi")},
	}
	change(&spec)
	return withVolume(corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
		VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: spec}}})
}

func TestValidateVolumes(t *testing.T) {
	const at = "spec.volumes[0]"
	runAll(t, []row{
		{name: "POD-250 an empty directory", change: withVolume(corev1.VolumeSource{})},
		{name: "no source", bare: true, change: withVolume(corev1.VolumeSource{}),
			want: []string{at + `: Required value: must specify a volume type`}},
		{name: "no name", change: func(s *corev1.PodSpec) { s.Volumes = []corev1.Volume{{}} },
			want: []string{at + `.name: Required value`}},
		{name: "one name twice", change: func(s *corev1.PodSpec) {
			s.Volumes = []corev1.Volume{{Name: "v"},
				{Name: "v"}}
		},
			want: []string{`spec.volumes[1].name: Duplicate value: "v"`}},
		{name: "two sources", change: withVolume(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{},
			HostPath: &corev1.HostPathVolumeSource{Path: "/"}}),
			want: []string{at + `.emptyDir: Forbidden: may not specify more than 1 volume type`}},
		{name: "negative size",
			change: withVolume(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{
				SizeLimit: ptr.To(resource.MustParse("-1"))}}),
			want: []string{at + `.emptyDir.sizeLimit: Forbidden: SizeLimit field must be a valid resource quantity`}},
		{name: "hostPath without a path",
			change: withVolume(corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{}}),
			want:   []string{at + `.hostPath.path: Required value`}},
		{name: "hostPath that climbs",
			change: withVolume(corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/a/../b"}}),
			want:   []string{at + `.hostPath.path: Invalid value: "/a/../b": must not contain '..'`}},
		{name: "hostPath of an unknown type",
			change: withVolume(corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/",
				Type: ptr.To(corev1.HostPathType("x"))}}),
			want: []string{at +
				`.hostPath.type: Unsupported value: "x": supported values: "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"`}},
		{name: "Secret without a name", change: withVolume(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{}}),
			want: []string{at + `.secret.secretName: Required value`}},
		{name: "Secret with a mode out of range",
			change: withVolume(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "n",
				DefaultMode: ptr.To[int32](0o1000)}}),
			want: []string{at +
				`.secret.defaultMode: Invalid value: 512: must be a number between 0 and 0777 (octal), both inclusive`}},
		{name: "ConfigMap without a name",
			change: withVolume(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}),
			want:   []string{at + `.configMap.name: Required value`}},
		{name: "keys of a ConfigMap",
			change: withVolume(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: named,
				Items: []corev1.KeyToPath{
					{}, {Key: "a", Path: "/abs"}, {Key: "b", Path: "../up"}, {Key: "c", Path: "..data"},
					{Key: "d", Path: "d", Mode: ptr.To[int32](-1)}, {Key: "e", Path: "dir/e"}}}}),
			want: []string{
				at + `.configMap.items[0].key: Required value`, at + `.configMap.items[0].path: Required value`,
				at + `.configMap.items[1].path: Invalid value: "/abs": must be a relative path`,
				at + `.configMap.items[2].path: Invalid value: "../up": must not contain '..'`,
				at + `.configMap.items[3].path: Invalid value: "..data": must not start with '..'`,
				at +
					`.configMap.items[4].mode: Invalid value: -1: must be a number between 0 and 0777 (octal), both inclusive`}},
		{name: "claim without a name",
			change: withVolume(corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{}}),
			want:   []string{at + `.persistentVolumeClaim.claimName: Required value`}},
		{name: "image", change: withVolume(corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "r"}})},
		{name: "image of nothing",
			change: withVolume(corev1.VolumeSource{Image: &corev1.ImageVolumeSource{PullPolicy: "x"}}),
			want: []string{at +
				`.image.pullPolicy: Unsupported value: "x": supported values: "Always", "IfNotPresent", "Never"`,
				at + `.image.reference: Required value`}},
		{name: "image with a blank",
			change: withVolume(corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "r "}}),
			want: []string{at +
				`.image.reference: Invalid value: "r ": must not have leading or trailing whitespace`}},
		{name: "driver", change: withVolume(corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "Example.com",
			NodePublishSecretRef: &corev1.LocalObjectReference{Name: "n"}}})},
		{name: "driver without a name",
			change: withVolume(corev1.VolumeSource{
				CSI: &corev1.CSIVolumeSource{NodePublishSecretRef: &corev1.LocalObjectReference{}}}),
			want: []string{at + `.csi.driver: Required value`,
				at + `.csi.nodePublishSecretRef.name: Required value`}},
	})
}

func TestValidateDownwardAPIVolumes(t *testing.T) {
	files := func(items ...corev1.DownwardAPIVolumeFile) func(*corev1.PodSpec) {
		return withVolume(corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: items}})
	}
	field := func(path string) func(*corev1.PodSpec) {
		return files(corev1.DownwardAPIVolumeFile{Path: "f", FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}})
	}
	const at = "spec.volumes[0].downwardAPI.items[0]"
	const supported = `supported values: "metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"`
	rows := []row{
		{name: "no source", change: files(corev1.DownwardAPIVolumeFile{Path: "f"}),
			want: []string{at + `: Required value: one of fieldRef and resourceFieldRef is required`}},
		{name: "two sources", change: files(corev1.DownwardAPIVolumeFile{Path: "f",
			FieldRef:         &corev1.ObjectFieldSelector{FieldPath: "metadata.name"},
			ResourceFieldRef: &corev1.ResourceFieldSelector{ContainerName: "c", Resource: "limits.cpu"}}),
			want: []string{at +
				`: Invalid value: "resource": fieldRef and resourceFieldRef can not be specified simultaneously`}},
		{name: "no path",
			change: files(corev1.DownwardAPIVolumeFile{FieldRef: &corev1.ObjectFieldSelector{
				FieldPath: "metadata.name"}}),
			want: []string{at + `.path: Required value`}},
		{name: "SAF-116 another field", change: field("status.phase"),
			want: []string{at +
				`.fieldRef.fieldPath: Invalid value: "status.phase": error converting fieldPath: field label not supported: status.phase`}},
		{name: "SAF-118 a resource of no container",
			change: files(corev1.DownwardAPIVolumeFile{Path: "f",
				ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.cpu"}}),
			want: []string{at + `.resourceFieldRef.containerName: Required value`}},
		{name: "one label", change: field("metadata.labels['a']")},
	}
	for _, path := range fileFields {
		rows = append(rows, row{name: "SAF-114 " + path, change: field(path)})
	}
	for _, path := range []string{"spec.serviceAccountName", "spec.nodeName", "status.hostIP", "status.hostIPs",
		"status.podIP", "status.podIPs"} {
		rows = append(rows, row{name: "SAF-112 " + path, change: field(path),
			want: []string{at + `.fieldRef.fieldPath: Unsupported value: "` + path + `": ` + supported}})
	}
	runAll(t, rows)
}

func TestValidateProjectedVolumes(t *testing.T) {
	sources := func(sources ...corev1.VolumeProjection) func(*corev1.PodSpec) {
		return withVolume(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: sources}})
	}
	token := func(seconds int64) corev1.VolumeProjection {
		return corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token",
			ExpirationSeconds: &seconds}}
	}
	bundle := func(b corev1.ClusterTrustBundleProjection) func(*corev1.PodSpec) {
		b.Path = "p"
		return sources(corev1.VolumeProjection{ClusterTrustBundle: &b})
	}
	certificate := func(c corev1.PodCertificateProjection) func(*corev1.PodSpec) {
		return sources(corev1.VolumeProjection{PodCertificate: &c})
	}
	const at = "spec.volumes[0].projected.sources[0]"
	runAll(t, []row{
		{name: "POD-212 token, authority and namespace", change: sources(token(3607),
			corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: named,
				Items: []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}}}},
			corev1.VolumeProjection{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{
				{Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"}}}}})},
		{name: "no source", change: sources(corev1.VolumeProjection{}),
			want: []string{at + `: Required value: must specify a volume type`}},
		{name: "two sources in one",
			change: sources(corev1.VolumeProjection{Secret: &corev1.SecretProjection{LocalObjectReference: named},
				ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: named}}),
			want: []string{at + `.configMap: Forbidden: may not specify more than 1 volume type per source`}},
		{name: "Secret without a name", change: sources(corev1.VolumeProjection{Secret: &corev1.SecretProjection{}}),
			want: []string{at + `.secret.name: Required value`}},
		{name: "ConfigMap without a name",
			change: sources(corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{}}),
			want:   []string{at + `.configMap.name: Required value`}},
		{name: "token for too short", change: sources(token(599)),
			want: []string{at +
				`.serviceAccountToken.expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes`}},
		{name: "token for too long", change: sources(token(1<<32 + 1)),
			want: []string{at +
				`.serviceAccountToken.expirationSeconds: Invalid value: 4294967297: may not specify a duration larger than 2^32 seconds`}},
		{name: "token nowhere",
			change: sources(corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{}}),
			want:   []string{at + `.serviceAccountToken.path: Required value`}},
		{name: "a file of the volume's own name",
			change: sources(corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: named,
				Items: []corev1.KeyToPath{{Key: "a", Path: "."}, {Key: "b", Path: "./"}, {Key: "c", Path: "a\x00"},
					{Key: "d", Path: "b//c"}}}}),
			want: []string{at + `.configMap.items[0].path: Invalid value: ".": must name a file, not the volume itself`,
				at + `.configMap.items[1].path: Invalid value: "./": must name a file, not the volume itself`,
				at + `.configMap.items[2].path: Invalid value: "a\x00": must not contain a NUL character`,
				`spec.volumes[0].projected.sources[0]: Invalid value: "./": conflicting duplicate paths`}},
		{name: "one file twice", change: sources(token(600),
			corev1.VolumeProjection{Secret: &corev1.SecretProjection{LocalObjectReference: named,
				Items: []corev1.KeyToPath{{Key: "k", Path: "token"}}}}),
			want: []string{
				`spec.volumes[0].projected.sources[1]: Invalid value: "token": conflicting duplicate paths`}},
		{name: "a file that is a directory",
			change: sources(token(600), corev1.VolumeProjection{Secret: &corev1.SecretProjection{
				LocalObjectReference: named, Items: []corev1.KeyToPath{{Key: "k", Path: "token/a"}}}}),
			want: []string{
				`spec.volumes[0].projected.sources[1]: Invalid value: "token/a": conflicting duplicate paths`}},
		{name: "bundle by name", change: bundle(corev1.ClusterTrustBundleProjection{Name: ptr.To("n")})},
		{name: "bundle by nothing", change: bundle(corev1.ClusterTrustBundleProjection{}),
			want: []string{at + `.clusterTrustBundle: Required value: either name or signerName must be specified`}},
		{name: "bundle by name and labels", change: bundle(corev1.ClusterTrustBundleProjection{Name: ptr.To("n"),
			LabelSelector: &metav1.LabelSelector{}}),
			want: []string{at +
				`.clusterTrustBundle.labelSelector: Invalid value: {}: labelSelector must be unset if name is specified`}},
		{name: "bundle by signer and labels",
			change: bundle(corev1.ClusterTrustBundleProjection{SignerName: ptr.To("example.com/s"),
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}})},
		{name: "certificate", change: certificate(corev1.PodCertificateProjection{SignerName: "example.com/s",
			KeyType: "ED25519", CredentialBundlePath: "b"})},
		{name: "certificate wrong in every way", change: certificate(corev1.PodCertificateProjection{KeyType: "DSA",
			MaxExpirationSeconds: ptr.To[int32](1)}),
			want: []string{
				at +
					`.podCertificate.keyType: Unsupported value: "DSA": supported values: "RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"`,
				at +
					`.podCertificate.maxExpirationSeconds: Invalid value: 1: must be between 3600 and 7862400, inclusive`,
				at + `.podCertificate.signerName: Required value`,
				at +
					`.podCertificate: Required value: specify at least one of credentialBundlePath, keyPath, and certificateChainPath`}},
	})
}

func TestValidateEphemeralVolumes(t *testing.T) {
	const at = "spec.volumes[0].ephemeral.volumeClaimTemplate"
	runAll(t, []row{
		{name: "a claim", change: claimTemplate(func(*corev1.PersistentVolumeClaimSpec) {})},
		{name: "no template", change: withVolume(corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}),
			want: []string{at + `: Required value`}},
		{name: "nothing in it", change: claimTemplate(func(s *corev1.PersistentVolumeClaimSpec) {
			*s = corev1.PersistentVolumeClaimSpec{}
		}),
			want: []string{at + `.spec.accessModes: Required value: at least 1 access mode is required`,
				at + `.spec.resources[storage]: Required value`}},
		{name: "metadata that only the claim itself has", change: func(s *corev1.PodSpec) {
			claimTemplate(func(*corev1.PersistentVolumeClaimSpec) {})(s)
			template := s.Volumes[0].Ephemeral.VolumeClaimTemplate
			template.Labels, template.Annotations = map[string]string{"a": "b"}, map[string]string{"c": "d"}
			template.Name, template.Finalizers = "mine", []string{"example.com/x"}
		}, want: []string{at + `.metadata.finalizers: Forbidden: cannot be set for an ephemeral volume`,
			at + `.metadata.name: Forbidden: cannot be set for an ephemeral volume`}},
		{name: "no size", change: claimTemplate(func(s *corev1.PersistentVolumeClaimSpec) {
			s.Resources.Requests = quantities("storage", "0")
		}),
			want: []string{at + `.spec.resources[storage]: Invalid value: "0": must be greater than zero`}},
		{name: "modes", change: claimTemplate(func(s *corev1.PersistentVolumeClaimSpec) {
			s.AccessModes = []corev1.PersistentVolumeAccessMode{"ReadWriteOncePod", "x"}
			s.VolumeMode = ptr.To(corev1.PersistentVolumeMode("x"))
		}), want: []string{
			at + `.spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes`,
			at +
				`.spec.accessModes[1]: Unsupported value: "x": supported values: "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"`,
			at + `.spec.volumeMode: Unsupported value: "x": supported values: "Block", "Filesystem"`}},
		{name: "no class and no source", change: claimTemplate(func(s *corev1.PersistentVolumeClaimSpec) {
			s.StorageClassName = ptr.To("")
			s.DataSource = &corev1.TypedLocalObjectReference{}
		}), want: []string{
			at + `.spec.dataSource.kind: Required value`, at + `.spec.dataSource.name: Required value`,
			at +
				`.spec.dataSource: Invalid value: "": must be 'PersistentVolumeClaim' when referencing the default apiGroup`}},
	})
}

func TestValidateMounts(t *testing.T) {
	mount := func(mounts ...corev1.VolumeMount) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) {
			withVolume(corev1.VolumeSource{})(s)
			s.Containers[0].VolumeMounts = mounts
		}
	}
	one := func(change func(*corev1.VolumeMount)) func(*corev1.PodSpec) {
		m := corev1.VolumeMount{Name: "v", MountPath: "/v"}
		change(&m)
		return mount(m)
	}
	device := func(devices ...corev1.VolumeDevice) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) {
			withVolume(corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{
				ClaimName: "n"}})(s)
			s.Volumes = append(s.Volumes, corev1.Volume{Name: "e"})
			s.Containers[0].VolumeDevices = devices
		}
	}
	const at = "spec.containers[0].volumeMounts[0]"
	runAll(t, []row{
		{name: "POD-250 one volume in two containers", change: func(s *corev1.PodSpec) {
			also(corev1.Container{Name: "b", Image: "b",
				VolumeMounts: []corev1.VolumeMount{{Name: "v", MountPath: "/v"}}})(s)
			one(func(*corev1.VolumeMount) {})(s)
		}},
		{name: "no name and no path", change: one(func(m *corev1.VolumeMount) { *m = corev1.VolumeMount{} }),
			want: []string{at + `.mountPath: Required value`, at + `.name: Required value`}},
		{name: "unknown volume", change: one(func(m *corev1.VolumeMount) { m.Name = "w" }),
			want: []string{at + `.name: Not found: "w"`}},
		{name: "one path twice", change: mount(corev1.VolumeMount{Name: "v", MountPath: "/v"},
			corev1.VolumeMount{Name: "v", MountPath: "/v"}),
			want: []string{`spec.containers[0].volumeMounts[1].mountPath: Invalid value: "/v": must be unique`}},
		{name: "absolute sub-path", change: one(func(m *corev1.VolumeMount) { m.SubPath = "/a" }),
			want: []string{at + `.subPath: Invalid value: "/a": must be a relative path`}},
		{name: "climbing sub-path", change: one(func(m *corev1.VolumeMount) { m.SubPathExpr = "$(A)/.." }),
			want: []string{at + `.subPathExpr: Invalid value: "$(A)/..": must not contain '..'`}},
		{name: "NUL in paths", change: one(func(m *corev1.VolumeMount) { m.SubPath, m.MountPath = "a\x00", "/v\x00" }),
			want: []string{at + `.mountPath: Invalid value: "/v\x00": must not contain a NUL character`,
				at + `.subPath: Invalid value: "a\x00": must not contain a NUL character`}},
		{name: "NUL in an expanded sub-path", change: one(func(m *corev1.VolumeMount) { m.SubPathExpr = "$(A)\x00" }),
			want: []string{at + `.subPathExpr: Invalid value: "$(A)\x00": must not contain a NUL character`}},
		{name: "sub-paths that are not in their shortest form",
			change: mount(corev1.VolumeMount{Name: "v", MountPath: "/v", SubPath: "a//b"}, corev1.VolumeMount{Name: "v",
				MountPath: "/w", SubPath: "."})},
		{name: "NUL in a device's path", change: device(corev1.VolumeDevice{Name: "v", DevicePath: "/dev/\x00"}),
			want: []string{
				`spec.containers[0].volumeDevices[0].devicePath: Invalid value: "/dev/\x00": must not contain a NUL character`,
			}},
		{name: "both sub-paths", change: one(func(m *corev1.VolumeMount) { m.SubPath, m.SubPathExpr = "a", "b" }),
			want: []string{at + `.subPathExpr: Invalid value: "b": subPathExpr and subPath are mutually exclusive`}},
		{name: "unknown propagation",
			change: one(func(m *corev1.VolumeMount) { m.MountPropagation = ptr.To(corev1.MountPropagationMode("x")) }),
			want: []string{at +
				`.mountPropagation: Unsupported value: "x": supported values: "Bidirectional", "HostToContainer", "None"`}},
		{name: "propagation to the host",
			change: one(func(m *corev1.VolumeMount) {
				m.MountPropagation = ptr.To(corev1.MountPropagationBidirectional)
			}),
			want: []string{at +
				`.mountPropagation: Forbidden: Bidirectional mount propagation is available only to privileged containers`}},
		{name: "propagation to the host by a privileged container", change: func(s *corev1.PodSpec) {
			one(func(m *corev1.VolumeMount) { m.MountPropagation = ptr.To(corev1.MountPropagationBidirectional) })(s)
			s.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: ptr.To(true)}
		}},
		{name: "read-only all the way", change: one(func(m *corev1.VolumeMount) {
			m.ReadOnly, m.RecursiveReadOnly = true, ptr.To(corev1.RecursiveReadOnlyEnabled)
		})},
		{name: "read-only below a writable mount", change: one(func(m *corev1.VolumeMount) {
			m.RecursiveReadOnly, m.MountPropagation = ptr.To(corev1.RecursiveReadOnlyIfPossible),
				ptr.To(corev1.MountPropagationHostToContainer)
		}),
			want: []string{at +
				`.recursiveReadOnly: Forbidden: may only be specified when mountPropagation is None or not specified`,
				at + `.recursiveReadOnly: Forbidden: may only be specified when readOnly is true`}},
		{name: "unknown way of being read-only",
			change: one(func(m *corev1.VolumeMount) {
				m.RecursiveReadOnly = ptr.To(
					corev1.RecursiveReadOnlyMode("x"))
			}),
			want: []string{at +
				`.recursiveReadOnly: Unsupported value: "x": supported values: "Disabled", "Enabled", "IfPossible"`}},
		{name: "a device", change: device(corev1.VolumeDevice{Name: "v", DevicePath: "/dev/a"})},
		{name: "devices wrong in every way", change: device(corev1.VolumeDevice{}, corev1.VolumeDevice{Name: "w",
			DevicePath: "/dev/../a"},
			corev1.VolumeDevice{Name: "e", DevicePath: "/dev/b"}, corev1.VolumeDevice{Name: "v", DevicePath: "/dev/b"},
			corev1.VolumeDevice{Name: "v", DevicePath: "/dev/c"}),
			want: []string{
				`spec.containers[0].volumeDevices[0].devicePath: Required value`,
				`spec.containers[0].volumeDevices[0].name: Required value`,
				`spec.containers[0].volumeDevices[1].devicePath: Invalid value: "/dev/../a": can not contain backsteps ('..')`,
				`spec.containers[0].volumeDevices[1].name: Not found: "w"`,
				`spec.containers[0].volumeDevices[2].name: Invalid value: "e": can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode`,
				`spec.containers[0].volumeDevices[3].devicePath: Invalid value: "/dev/b": must be unique`,
				`spec.containers[0].volumeDevices[4].name: Invalid value: "v": must be unique`,
			}},
		{name: "mounted as a device and as a directory", change: func(s *corev1.PodSpec) {
			device(corev1.VolumeDevice{Name: "v", DevicePath: "/v"})(s)
			s.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/v"}}
		}, want: []string{at + `.mountPath: Invalid value: "/v": must not already exist as a path in volumeDevices`,
			at + `.name: Invalid value: "v": must not already exist in volumeDevices`}},
	})
}

func TestValidateNetworkDisks(t *testing.T) {
	const at = "spec.volumes[0]."
	rows := []struct {
		name   string
		source corev1.VolumeSource
		want   []string
	}{
		{"nfs", corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{}}, []string{`nfs.path: Required value`,
			`nfs.server: Required value`}},
		{"nfs relative", corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{Server: "s", Path: "p"}},
			[]string{`nfs.path: Invalid value: "p": must be an absolute path`}},
		{"iscsi", corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{Lun: 256, SessionCHAPAuth: true}},
			[]string{`iscsi.iqn: Required value`, `iscsi.lun: Invalid value: 256: must be between 0 and 255, inclusive`,
				`iscsi.secretRef: Required value`, `iscsi.targetPortal: Required value`}},
		{"fc", corev1.VolumeSource{FC: &corev1.FCVolumeSource{}},
			[]string{`fc.targetWWNs: Required value: must specify either targetWWNs or wwids, but not both`}},
		{"fc both", corev1.VolumeSource{FC: &corev1.FCVolumeSource{TargetWWNs: []string{"a"}, WWIDs: []string{"b"}}},
			[]string{`fc.targetWWNs: Invalid value: ["a"]: targetWWNs and wwids can not be specified simultaneously`}},
		{"fc no lun", corev1.VolumeSource{FC: &corev1.FCVolumeSource{TargetWWNs: []string{"a"}}},
			[]string{`fc.lun: Required value: lun is required if targetWWNs is specified`}},
		{"fc lun", corev1.VolumeSource{FC: &corev1.FCVolumeSource{TargetWWNs: []string{"a"}, Lun: ptr.To[int32](-1)}},
			[]string{`fc.lun: Invalid value: -1: must be between 0 and 255, inclusive`}},
		{"rbd", corev1.VolumeSource{RBD: &corev1.RBDVolumeSource{}}, []string{`rbd.image: Required value`,
			`rbd.monitors: Required value`}},
		{"cephfs", corev1.VolumeSource{CephFS: &corev1.CephFSVolumeSource{}},
			[]string{`cephfs.monitors: Required value`}},
		{"gce", corev1.VolumeSource{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{Partition: -1}},
			[]string{`gcePersistentDisk.partition: Invalid value: -1: must be between 0 and 255, inclusive`,
				`gcePersistentDisk.pdName: Required value`}},
		{"aws", corev1.VolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{}},
			[]string{`awsElasticBlockStore.volumeID: Required value`}},
		{"git", corev1.VolumeSource{GitRepo: &corev1.GitRepoVolumeSource{Directory: "/a"}},
			[]string{`gitRepo.directory: Invalid value: "/a": must be a relative path`,
				`gitRepo.repository: Required value`}},
		{"glusterfs", corev1.VolumeSource{Glusterfs: &corev1.GlusterfsVolumeSource{}},
			[]string{`glusterfs.endpoints: Required value`, `glusterfs.path: Required value`}},
		{"flex", corev1.VolumeSource{FlexVolume: &corev1.FlexVolumeSource{}},
			[]string{`flexVolume.driver: Required value`}},
		{"cinder", corev1.VolumeSource{Cinder: &corev1.CinderVolumeSource{SecretRef: &corev1.LocalObjectReference{}}},
			[]string{`cinder.secretRef.name: Required value`, `cinder.volumeID: Required value`}},
		{"flocker", corev1.VolumeSource{Flocker: &corev1.FlockerVolumeSource{}},
			[]string{`flocker: Required value: one of datasetName and datasetUUID is required`}},
		{"flocker both", corev1.VolumeSource{Flocker: &corev1.FlockerVolumeSource{DatasetName: "a", DatasetUUID: "b"}},
			[]string{
				`flocker: Invalid value: "resource": datasetName and datasetUUID can not be specified simultaneously`}},
		{"azure file", corev1.VolumeSource{AzureFile: &corev1.AzureFileVolumeSource{}},
			[]string{`azureFile.secretName: Required value`, `azureFile.shareName: Required value`}},
		{"azure disk", corev1.VolumeSource{AzureDisk: &corev1.AzureDiskVolumeSource{
			Kind: ptr.To(corev1.AzureDataDiskKind("x"))}},
			[]string{`azureDisk.diskName: Required value`, `azureDisk.diskURI: Required value`,
				`azureDisk.kind: Unsupported value: "x": supported values: "Dedicated", "Managed", "Shared"`}},
		{"vsphere", corev1.VolumeSource{VsphereVolume: &corev1.VsphereVirtualDiskVolumeSource{}},
			[]string{`vsphereVolume.volumePath: Required value`}},
		{"photon", corev1.VolumeSource{PhotonPersistentDisk: &corev1.PhotonPersistentDiskVolumeSource{}},
			[]string{`photonPersistentDisk.pdID: Required value`}},
		{"portworx", corev1.VolumeSource{PortworxVolume: &corev1.PortworxVolumeSource{}},
			[]string{`portworxVolume.volumeID: Required value`}},
		{"quobyte", corev1.VolumeSource{Quobyte: &corev1.QuobyteVolumeSource{}},
			[]string{`quobyte.registry: Required value`, `quobyte.volume: Required value`}},
		{"scaleio", corev1.VolumeSource{ScaleIO: &corev1.ScaleIOVolumeSource{}},
			[]string{`scaleIO.gateway: Required value`, `scaleIO.system: Required value`,
				`scaleIO.volumeName: Required value`}},
		{"storageos", corev1.VolumeSource{StorageOS: &corev1.StorageOSVolumeSource{}},
			[]string{`storageos.volumeName: Required value`}},
	}
	for _, r := range rows {
		want := make([]string, len(r.want))
		for i := range r.want {
			want[i] = at + r.want[i]
		}
		row{name: r.name, change: withVolume(r.source), want: want}.run(t)
	}
}
