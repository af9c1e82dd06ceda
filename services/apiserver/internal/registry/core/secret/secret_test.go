package secret

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/fieldcheck/fieldtest"
)

func secret(kind corev1.SecretType, keys ...string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default"}, Type: kind,
		Data: map[string][]byte{}}
	for _, key := range keys {
		s.Data[key] = []byte("{}")
	}
	Default(s)
	return s
}

func TestDefault(t *testing.T) {
	s := &corev1.Secret{Data: map[string][]byte{"a": []byte("old"), "b": []byte("kept")},
		StringData: map[string]string{"a": "new"}}
	Default(s)
	if s.Type != corev1.SecretTypeOpaque || string(s.Data["a"]) != "new" || string(s.Data["b"]) != "kept" ||
		s.StringData != nil {
		t.Errorf("got %+v", s)
	}
	again := s.DeepCopy()
	if Default(again); !equality.Semantic.DeepEqual(s, again) {
		t.Error("defaults are not idempotent")
	}
}

func TestValidate(t *testing.T) {
	annotated := secret(corev1.SecretTypeServiceAccountToken)
	annotated.Annotations = map[string]string{corev1.ServiceAccountNameKey: "default"}
	garbled := secret(corev1.SecretTypeDockerConfigJson, corev1.DockerConfigJsonKey)
	garbled.Data[corev1.DockerConfigJsonKey] = []byte("{")
	large := secret("", "a")
	large.Data["a"] = make([]byte, corev1.MaxSecretSize+1)
	full := secret("", "a")
	full.Data["a"] = make([]byte, corev1.MaxSecretSize)
	for _, row := range []struct {
		name   string
		secret *corev1.Secret
		want   []string
	}{
		{"opaque", secret("", "a.b-c_D"), nil},
		{"a type of one's own", secret("example.com/x"), nil},
		{"bad keys", secret("", "a/b", ".."), []string{`data[a/b]: Invalid value: "a/b"`,
			`data[..]: Invalid value: ".."`}},
		{"largest", full, nil},
		{"too large", large, []string{"data: Too long"}},
		{"token without an account", secret(corev1.SecretTypeServiceAccountToken),
			[]string{"metadata.annotations[kubernetes.io/service-account.name]: Required value"}},
		{"token", annotated, nil},
		{"dockercfg", secret(corev1.SecretTypeDockercfg), []string{"data[.dockercfg]: Required value"}},
		{"dockerconfigjson", secret(corev1.SecretTypeDockerConfigJson, ".dockerconfigjson"), nil},
		{"dockerconfigjson that is none", garbled,
			[]string{`data[.dockerconfigjson]: Invalid value: "<secret contents redacted>"`}},
		{"basic auth with nothing", secret(corev1.SecretTypeBasicAuth), []string{"data[username]: Required value",
			"data[password]: Required value"}},
		{"basic auth with one", secret(corev1.SecretTypeBasicAuth, "username"), nil},
		{"ssh without a key", secret(corev1.SecretTypeSSHAuth), []string{"data[ssh-privatekey]: Required value"}},
		{"ssh", secret(corev1.SecretTypeSSHAuth, "ssh-privatekey"), nil},
		{"tls by halves", secret(corev1.SecretTypeTLS, "tls.crt"), []string{"data[tls.key]: Required value"}},
		{"tls", secret(corev1.SecretTypeTLS, "tls.crt", "tls.key"), nil},
	} {
		t.Run(row.name, func(t *testing.T) { fieldtest.Check(t, Validate(row.secret), row.want...) })
	}
}

func TestValidateUpdate(t *testing.T) {
	frozen := secret("", "a")
	frozen.Immutable = ptr.To(true)
	for _, row := range []struct {
		name string
		old  *corev1.Secret
		edit func(*corev1.Secret)
		want []string
	}{
		{"itself", frozen, func(*corev1.Secret) {}, nil},
		{"data", secret("", "a"), func(s *corev1.Secret) { s.Data["b"] = nil }, nil},
		{"type", secret("", "a"), func(s *corev1.Secret) { s.Type = "example.com/x" },
			[]string{"type: Invalid value: \"example.com/x\": field is immutable"}},
		{"frozen data", frozen, func(s *corev1.Secret) { s.Data["b"] = nil },
			[]string{"data: Forbidden: field is immutable when `immutable` is set"}},
		{"thawing", frozen, func(s *corev1.Secret) { s.Immutable = nil },
			[]string{"immutable: Forbidden: field is immutable when `immutable` is set"}},
		{"freezing", secret("", "a"), func(s *corev1.Secret) { s.Immutable = ptr.To(true) }, nil},
		{"labels of a frozen one", frozen, func(s *corev1.Secret) { s.Labels = map[string]string{"a": "b"} }, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := row.old.DeepCopy()
			row.edit(s)
			fieldtest.Check(t, ValidateUpdate(s, row.old), row.want...)
		})
	}
}
