package podview

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestVisitReferences(t *testing.T) {
	local := func(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }
	volume := func(source corev1.VolumeSource) corev1.PodSpec {
		return corev1.PodSpec{Volumes: []corev1.Volume{{Name: "v", VolumeSource: source}}}
	}
	env := []corev1.EnvVar{
		{Name: "0", Value: "comes before all that refer"},
		{Name: "A", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
			LocalObjectReference: local("a")}}},
		{Name: "B", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: local("b")}}},
		{Name: "C", Value: "c"}, {Name: "D",
			ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
	}
	from := []corev1.EnvFromSource{
		{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: local("c")}},
		{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: local("d")}},
	}
	ofEnv := []Reference{{ConfigMaps, "c"}, {Secrets, "d"}, {ConfigMaps, "a"}, {Secrets, "b"}}
	secret, driver := []Reference{{Secrets, "s"}}, local("s")
	rows := map[string]struct {
		spec corev1.PodSpec
		want []Reference
	}{
		"nothing":     {corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}}}, nil},
		"the account": {corev1.PodSpec{ServiceAccountName: "bot"}, []Reference{{ServiceAccounts, "bot"}}},
		"pull secrets": {corev1.PodSpec{ImagePullSecrets: []corev1.LocalObjectReference{local("s"), local("")}},
			secret},
		"main containers": {corev1.PodSpec{Containers: []corev1.Container{{}, {Env: env, EnvFrom: from}}}, ofEnv},
		"init containers": {corev1.PodSpec{InitContainers: []corev1.Container{{Env: env, EnvFrom: from}}}, ofEnv},
		"ephemeral containers": {corev1.PodSpec{EphemeralContainers: []corev1.EphemeralContainer{
			{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Env: env, EnvFrom: from}}}}, ofEnv},
		"a ConfigMap volume": {volume(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: local("c")}}), []Reference{{ConfigMaps, "c"}}},
		"a Secret volume": {volume(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s"}}),
			secret},
		"a projected volume": {volume(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			Sources: []corev1.VolumeProjection{
				{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: local("c")}},
				{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{}},
				{Secret: &corev1.SecretProjection{LocalObjectReference: local("s")}},
			}}}), []Reference{{ConfigMaps, "c"}, {ServiceAccountTokens, ""}, {Secrets, "s"}}},
		"a claim": {volume(corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}),
			[]Reference{{PersistentVolumeClaims, "data"}}},
		"a claim of its own": {volume(corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}),
			[]Reference{{PersistentVolumeClaims, "web-v"}}},
		"an empty directory": {volume(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}), nil},
		"CSI": {volume(corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{NodePublishSecretRef: &driver}}),
			secret},
		"CSI without secret": {volume(corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{}}), nil},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			var got []Reference
			VisitReferences(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: row.spec},
				func(r Reference) { got = append(got, r) })
			if !slices.Equal(got, row.want) {
				t.Errorf("the Pod refers to %v, want %v", got, row.want)
			}
		})
	}
}
