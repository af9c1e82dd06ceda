package podspec

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

// SAF-118: the divisors of each resource, and one beside them. They differ between cpu and what is counted in bytes.
func TestDivisors(t *testing.T) {
	const cpu = "only divisor's values 1m and 1 are supported with the cpu resource"
	bytes := func(of string) string {
		return "only divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are supported with the " +
			of + " resource"
	}
	for name, message := range map[string]string{
		"limits.cpu": cpu, "requests.cpu": cpu, "limits.memory": bytes("memory"), "requests.memory": bytes("memory"),
		"limits.ephemeral-storage":   bytes("local ephemeral storage"),
		"requests.ephemeral-storage": bytes("local ephemeral storage"),
		"limits.hugepages-2Mi":       bytes("hugepages"), "requests.hugepages-1Gi": bytes("hugepages"),
	} {
		good := []string{"0", "1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"}
		bad := []string{"1m", "2", "1025", "-1"}
		if message == cpu {
			good, bad = []string{"0", "1m", "1", "1000m"}, []string{"1k", "1Ki", "2m", "-1"}
		}
		for i, divisor := range append(good, bad...) {
			var want []string
			if i >= len(good) {
				want = []string{"spec.containers[0].env[0].valueFrom.resourceFieldRef.divisor: Invalid value: \"" +
					divisor + `": ` + message}
			}
			row{name: name + " by " + divisor, want: want, change: resourceRef(corev1.ResourceFieldSelector{
				Resource: name, Divisor: resource.MustParse(divisor)})}.run(t)
		}
	}
}

// How one entry of the labels or annotations is named, and what only looks like it.
func TestSubscripts(t *testing.T) {
	const at = "spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Invalid value: "
	unsupported := func(path string) []string {
		return []string{at + `"` + path + `": error converting fieldPath: field label not supported: ` + path}
	}
	runAll(t, []row{
		{name: "SAF-110 an annotation with a domain", change: fieldRef("metadata.annotations['a.example.com/b']")},
		{name: "a malformed annotation", change: fieldRef("metadata.annotations['a b']"),
			want: []string{at + `"a b": ` + notAName}},
		{name: "a label whose domain is in upper case", change: fieldRef("metadata.labels['Example.com/a']"),
			want: []string{at + `"Example.com/a": prefix part ` + notASub}},
		{name: "no entry", change: fieldRef("metadata.labels['']"), want: []string{
			at + `"": name part must be non-empty`, at + `"": ` + notAName}},
		{name: "SAF-116 never closed", change: fieldRef("metadata.labels['a'"),
			want: unsupported("metadata.labels['a'")},
		{name: "SAF-116 never opened", change: fieldRef("metadata.labels a']"),
			want: unsupported("metadata.labels a']")},
		{name: "SAF-116 of nothing", change: fieldRef("['a']"), want: unsupported("['a']")},
		{name: "SAF-116 other quotes", change: fieldRef(`metadata.labels["a"]`), want: []string{
			at +
				`"metadata.labels[\"a\"]": error converting fieldPath: field label not supported: metadata.labels["a"]`}},
	})
}

// A file of the downward API: its mode, its container and its resource.
func TestDownwardFiles(t *testing.T) {
	file := func(change func(*corev1.DownwardAPIVolumeFile)) func(*corev1.PodSpec) {
		item := corev1.DownwardAPIVolumeFile{Path: "f",
			ResourceFieldRef: &corev1.ResourceFieldSelector{ContainerName: "nginx", Resource: "limits.cpu"}}
		change(&item)
		return withVolume(corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{
			Items: []corev1.DownwardAPIVolumeFile{item}}})
	}
	mode := func(mode int32) func(*corev1.PodSpec) {
		return file(func(f *corev1.DownwardAPIVolumeFile) { f.Mode = &mode })
	}
	volume := func(source corev1.VolumeSource) func(*corev1.PodSpec) { return withVolume(source) }
	const at = "spec.volumes[0].downwardAPI.items[0]"
	const octal = "must be a number between 0 and 0777 (octal), both inclusive"
	runAll(t, []row{
		{name: "SAF-117 a limit", change: file(func(*corev1.DownwardAPIVolumeFile) {})},
		{name: "SAF-118 no resource of no container", change: file(func(f *corev1.DownwardAPIVolumeFile) {
			*f.ResourceFieldRef = corev1.ResourceFieldSelector{}
		}), want: []string{at + `.resourceFieldRef.containerName: Required value`,
			at + `.resourceFieldRef.resource: Required value`}},
		{name: "SAF-118 a divisor", change: file(func(f *corev1.DownwardAPIVolumeFile) {
			f.ResourceFieldRef.Divisor = resource.MustParse("3")
		}), want: []string{at +
			`.resourceFieldRef.divisor: Invalid value: "3": only divisor's values 1m and 1 are supported with the cpu resource`}},
		{name: "all rights", change: mode(511)},
		{name: "more than all rights", change: mode(512), want: []string{at + `.mode: Invalid value: 512: ` + octal}},
		{name: "negative rights", change: mode(-1), want: []string{at + `.mode: Invalid value: -1: ` + octal}},
		{name: "a file above", change: file(func(f *corev1.DownwardAPIVolumeFile) { f.Path = "../f" }),
			want: []string{at + `.path: Invalid value: "../f": must not contain '..'`}},
		{name: "rights of all files", change: volume(corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{
			DefaultMode: ptr.To[int32](512)}}),
			want: []string{`spec.volumes[0].downwardAPI.defaultMode: Invalid value: 512: ` + octal}},
		{name: "rights of a ConfigMap's files", change: volume(corev1.VolumeSource{
			ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: named, DefaultMode: ptr.To[int32](-1)}}),
			want: []string{`spec.volumes[0].configMap.defaultMode: Invalid value: -1: ` + octal}},
		{name: "keys of a Secret", change: volume(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
			SecretName: "n", Items: []corev1.KeyToPath{{Key: "k", Path: ".."}}}}), want: []string{
			`spec.volumes[0].secret.items[0].path: Invalid value: "..": must not contain '..'`,
			`spec.volumes[0].secret.items[0].path: Invalid value: "..": must not start with '..'`}},
	})
}

// Where the value of a variable comes from, beside what TestValidateEnv refuses.
func TestVariableSources(t *testing.T) {
	secret := func(name, key string) func(*corev1.PodSpec) {
		return from(corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key}})
	}
	const at = "spec.containers[0].env[0].valueFrom"
	runAll(t, []row{
		{name: "key of a Secret", change: secret("s", "k")},
		{name: "no key of a Secret", change: secret("s", ""), want: []string{at + `.secretKeyRef.key: Required value`}},
		{name: "malformed name of a Secret", change: secret("A", "k"),
			want: []string{at + `.secretKeyRef.name: Invalid value: "A": ` + notASub}},
		{name: "SAF-118 a limit of its own container", change: resourceRef(corev1.ResourceFieldSelector{
			Resource: "limits.memory"})},
		{name: "a source that is wrong beside a value", change: first(func(c *corev1.Container) {
			c.Env = []corev1.EnvVar{{Name: "A"}, {Name: "B", Value: "b", ValueFrom: &corev1.EnvVarSource{
				SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: named}}}}
		}), want: []string{
			`spec.containers[0].env[1].valueFrom.secretKeyRef.key: Required value`,
			"spec.containers[0].env[1].valueFrom: Invalid value: \"\": may not be specified when `value` is not empty",
		}},
		{name: "two sources beside a value", change: first(func(c *corev1.Container) {
			c.Env = []corev1.EnvVar{{Name: "A", Value: "b", ValueFrom: &corev1.EnvVarSource{
				FieldRef:         &corev1.ObjectFieldSelector{FieldPath: "metadata.name"},
				ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.cpu"}}}}
		}), want: []string{at + ": Invalid value: \"\": may not be specified when `value` is not empty"}},
		{name: "malformed names of whole sources", change: first(func(c *corev1.Container) {
			bad := corev1.LocalObjectReference{Name: "A"}
			c.EnvFrom = []corev1.EnvFromSource{
				{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: bad}},
				{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: bad}}}
		}), want: []string{`spec.containers[0].envFrom[0].configMapRef.name: Invalid value: "A": ` + notASub,
			`spec.containers[0].envFrom[1].secretRef.name: Invalid value: "A": ` + notASub}},
	})
}
