package podspec

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// from makes nginx's only variable come from a source.
func from(source corev1.EnvVarSource) func(*corev1.PodSpec) {
	return first(func(c *corev1.Container) { c.Env = []corev1.EnvVar{{Name: "A", ValueFrom: &source}} })
}

func fieldRef(path string) func(*corev1.PodSpec) {
	return from(corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}})
}

func resourceRef(ref corev1.ResourceFieldSelector) func(*corev1.PodSpec) {
	return from(corev1.EnvVarSource{ResourceFieldRef: &ref})
}

func TestValidateEnv(t *testing.T) {
	key := func(name, key string) func(*corev1.PodSpec) {
		return from(corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key}})
	}
	file := func(ref corev1.FileKeySelector, source corev1.VolumeSource) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) {
			withVolume(source)(s)
			from(corev1.EnvVarSource{FileKeyRef: &ref})(s)
		}
	}
	const at = "spec.containers[0].env[0]"
	runAll(t, []row{
		{name: "plain", change: first(func(c *corev1.Container) {
			c.Env = []corev1.EnvVar{{Name: "A", Value: "b"}, {Name: "with.dot-and 1 blank"}}
		})},
		{name: "NUL in a value", change: first(func(c *corev1.Container) {
			c.Env = []corev1.EnvVar{{Name: "A",
				Value: "b\x00c"}}
		}),
			want: []string{at + `.value: Invalid value: "b\x00c": must not contain a NUL character`}},
		{name: "no name", change: first(func(c *corev1.Container) { c.Env = []corev1.EnvVar{{Value: "b"}} }),
			want: []string{at + `.name: Required value`}},
		{name: "name with =", change: first(func(c *corev1.Container) { c.Env = []corev1.EnvVar{{Name: "a=b"}} }),
			want: []string{at +
				`.name: Invalid value: "a=b": a valid environment variable name must consist only of printable ASCII characters other than '='`}},
		{name: "a source that is none", change: from(corev1.EnvVarSource{}),
			want: []string{at + ".valueFrom: Invalid value: \"\": must specify one of: `fieldRef`, " +
				"`resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"}},
		{name: "a value and a source", change: first(func(c *corev1.Container) {
			c.Env = []corev1.EnvVar{{Name: "A", Value: "b",
				ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}}}
		}), want: []string{at + ".valueFrom: Invalid value: \"\": may not be specified when `value` is not empty"}},
		{name: "two sources",
			change: from(corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"},
				ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.cpu"}}),
			want: []string{at + `.valueFrom: Invalid value: "": may not have more than one field specified at a time`}},
		{name: "key of a ConfigMap", change: key("config", "log.level")},
		{name: "key of nothing", change: key("config", ""),
			want: []string{at + `.valueFrom.configMapKeyRef.key: Required value`}},
		{name: "malformed key", change: key("config", "a/b"),
			want: []string{at +
				`.valueFrom.configMapKeyRef.key: Invalid value: "a/b": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')`}},
		{name: "key of a Secret without a name",
			change: from(corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "k"}}),
			want: []string{at +
				`.valueFrom.secretKeyRef.name: Invalid value: "": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`}},
		{name: "key of a file", change: file(corev1.FileKeySelector{VolumeName: "v", Path: "env", Key: "A"},
			corev1.VolumeSource{})},
		{name: "long key of a file, which only the feature's alpha refused",
			change: file(corev1.FileKeySelector{VolumeName: "v", Path: "env", Key: strings.Repeat("A", 129)},
				corev1.VolumeSource{})},
		{name: "key of a file wrong in every way", change: file(corev1.FileKeySelector{VolumeName: "w", Path: "/env"},
			corev1.VolumeSource{}),
			want: []string{at + `.valueFrom.fileKeyRef.key: Required value`,
				at + `.valueFrom.fileKeyRef.path: Invalid value: "/env": must be a relative path`,
				at + `.valueFrom.fileKeyRef.volumeName: Not found: "w"`}},
		{name: "key of a file in another kind of volume",
			change: file(corev1.FileKeySelector{VolumeName: "v", Path: "env", Key: "A"},
				corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}),
			want: []string{at + `.valueFrom.fileKeyRef.volumeName: Invalid value: "v": must be an emptyDir volume`}},
		{name: "key of a file nowhere",
			change: from(corev1.EnvVarSource{FileKeyRef: &corev1.FileKeySelector{Path: "env", Key: "A"}}),
			want:   []string{at + `.valueFrom.fileKeyRef.volumeName: Required value`}},
	})
}

func TestValidateEnvFrom(t *testing.T) {
	sources := func(sources ...corev1.EnvFromSource) func(*corev1.PodSpec) {
		return first(func(c *corev1.Container) { c.EnvFrom = sources })
	}
	name := corev1.LocalObjectReference{Name: "n"}
	const at = "spec.containers[0].envFrom[0]"
	runAll(t, []row{
		{name: "both kinds", change: sources(corev1.EnvFromSource{Prefix: "A_",
			ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: name}},
			corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: name}})},
		{name: "nothing", change: sources(corev1.EnvFromSource{}),
			want: []string{at + ": Invalid value: \"\": must specify one of: `configMapRef` or `secretRef`"}},
		{name: "both at once",
			change: sources(corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: name},
				SecretRef: &corev1.SecretEnvSource{LocalObjectReference: name}}),
			want: []string{at + `: Invalid value: "": may not have more than one field specified at a time`}},
		{name: "no names", change: sources(corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{}}),
			want: []string{at + `.configMapRef.name: Required value`}},
		{name: "no name of a Secret", change: sources(corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{}}),
			want: []string{at + `.secretRef.name: Required value`}},
		{name: "prefix with =", change: sources(corev1.EnvFromSource{Prefix: "=",
			ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: name}}),
			want: []string{at +
				`.prefix: Invalid value: "=": a valid environment variable name must consist only of printable ASCII characters other than '='`}},
	})
}

func TestValidateDownwardAPIVariables(t *testing.T) {
	const at = "spec.containers[0].env[0].valueFrom.fieldRef"
	const supported = `supported values: "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"`
	rows := []row{
		{name: "SAF-114 all labels", change: fieldRef("metadata.labels"),
			want: []string{at + `.fieldPath: Unsupported value: "metadata.labels": ` + supported}},
		{name: "SAF-114 all annotations", change: fieldRef("metadata.annotations"),
			want: []string{at + `.fieldPath: Unsupported value: "metadata.annotations": ` + supported}},
		{name: "SAF-116 another field", change: fieldRef("spec.restartPolicy"),
			want: []string{at +
				`.fieldPath: Invalid value: "spec.restartPolicy": error converting fieldPath: field label not supported: spec.restartPolicy`}},
		{name: "SAF-116 a subscript elsewhere", change: fieldRef("metadata.name['a']"),
			want: []string{at + `.fieldPath: Invalid value: "metadata.name": does not support subscript`}},
		{name: "one label", change: fieldRef("metadata.labels['app.kubernetes.io/name']")},
		{name: "one annotation, in any case", change: fieldRef("metadata.annotations['Example.com/Key']")},
		{name: "a malformed label", change: fieldRef("metadata.labels['a b']"),
			want: []string{at +
				`.fieldPath: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`}},
		{name: "no path", change: fieldRef(""), want: []string{at + `.fieldPath: Required value`}},
		{name: "no version", bare: true, change: fieldRef("metadata.name"),
			want: []string{at + `.apiVersion: Required value`}},
		{name: "another version",
			change: from(corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v2",
				FieldPath: "metadata.name"}}),
			want: []string{at +
				`.fieldPath: Invalid value: "metadata.name": error converting fieldPath: unsupported pod version: v2`}},
	}
	for _, path := range envFields {
		rows = append(rows, row{name: "SAF-112 " + path, change: fieldRef(path)})
	}
	runAll(t, rows)
}

func TestValidateResourceVariables(t *testing.T) {
	const at = "spec.containers[0].env[0].valueFrom.resourceFieldRef"
	divisor := func(name, divisor string) func(*corev1.PodSpec) {
		return resourceRef(corev1.ResourceFieldSelector{Resource: name, Divisor: resource.MustParse(divisor)})
	}
	rows := []row{
		{name: "no resource", change: resourceRef(corev1.ResourceFieldSelector{}),
			want: []string{at + `.resource: Required value`}},
		{name: "SAF-117 another resource",
			change: resourceRef(corev1.ResourceFieldSelector{Resource: "limits.example.com/gpu"}),
			want: []string{at +
				`.resource: Unsupported value: "limits.example.com/gpu": supported values: "limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu", "requests.ephemeral-storage", "requests.memory"`}},
		{name: "SAF-118 cores and thousandths", change: divisor("limits.cpu", "1m")},
		{name: "cpu by two", change: divisor("limits.cpu", "2"),
			want: []string{at +
				`.divisor: Invalid value: "2": only divisor's values 1m and 1 are supported with the cpu resource`}},
		{name: "memory by mebibytes", change: divisor("requests.memory", "1Mi")},
		{name: "memory by three", change: divisor("requests.memory", "3"),
			want: []string{at +
				`.divisor: Invalid value: "3": only divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are supported with the memory resource`}},
		{name: "huge pages by three", change: divisor("limits.hugepages-2Mi", "3"),
			want: []string{at +
				`.divisor: Invalid value: "3": only divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are supported with the hugepages resource`}},
		{name: "storage by three", change: divisor("limits.ephemeral-storage", "3"),
			want: []string{at +
				`.divisor: Invalid value: "3": only divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are supported with the local ephemeral storage resource`}},
	}
	for _, name := range append([]string{"limits.hugepages-2Mi", "requests.hugepages-1Gi"}, refResources...) {
		rows = append(rows, row{name: "SAF-117 " + name,
			change: resourceRef(corev1.ResourceFieldSelector{Resource: name})})
	}
	runAll(t, rows)
}
