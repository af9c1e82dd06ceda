package steps

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/nodeagent/internal/podstate"
)

func TestPulls(t *testing.T) {
	for _, r := range []struct {
		policy  corev1.PullPolicy
		image   string
		present bool
		want    bool
	}{
		{corev1.PullAlways, "a:1", true, true},
		{corev1.PullIfNotPresent, "a:1", true, false},
		{corev1.PullIfNotPresent, "a:1", false, true},
		{corev1.PullNever, "a:1", false, false},
		{"", "a:1", true, false},
		{"", "a", true, true},
		{"", "a:latest", true, true},
		{"", "host:5000/a", true, true},
		{"", "a@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", true, false},
	} {
		if got := pulls(r.policy, r.image, r.present); got != r.want {
			t.Errorf("pulls(%q, %q, present %v) = %v, want %v", r.policy, r.image, r.present, got, r.want)
		}
	}
}

func TestQualify(t *testing.T) {
	for image, want := range map[string]string{
		"nginx":             "docker.io/library/nginx:latest",
		"a/b:1":             "docker.io/a/b:1",
		"localhost/test:1":  "localhost/test:1",
		"host:5000/x":       "host:5000/x:latest",
		"quay.io/org/x:dev": "quay.io/org/x:dev",
	} {
		if got, err := qualify(image); err != nil || got.String() != want {
			t.Errorf("qualify(%q) = %v, %v; want %s", image, got, err, want)
		}
	}
	_, err := qualify("No Such Image")
	if ImageReason(err) != podstate.InvalidImageName {
		t.Errorf("a wrong name gives reason %q", ImageReason(err))
	}
	if got := ImageReason(errors.New("else")); got != podstate.ErrImagePull {
		t.Errorf("any other error gives reason %q", got)
	}
}

func TestCredentials(t *testing.T) {
	secret := &corev1.Secret{Type: corev1.SecretTypeDockerConfigJson,
		Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(
			`{"auths":{"https://index.docker.io/v1/":{"auth":"YTpi"},"quay.io/org":{"username":"c","password":"d"},"reg:5000":{"username":"e"}}}`,
		)}}
	for image, want := range map[string]string{"nginx": "a", "quay.io/org/x": "c", "quay.io/organ/x": "",
		"quay.io/other/x": "", "reg:5000/y": "e", "ghcr.io/x": ""} {
		ref, err := qualify(image)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if found := credentialsIn(secret, ref); len(found) > 0 {
			got = found[0].auth.Username
		}
		if got != want {
			t.Errorf("%s: user %q, want %q", image, got, want)
		}
	}
}

// A Pod that claims devices never runs without them.
func TestClaimsAreAwaited(t *testing.T) {
	for claims, waits := range []bool{false, true} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{ResourceClaims: make([]corev1.PodResourceClaim, claims)}}
		if _, err := awaitClaims(t.Context(), pod); (err != nil) != waits {
			t.Errorf("with %d claims: %v", claims, err)
		}
	}
	if first := (&Steps{}).Preparation()[0]; first.Name != "claims" || first.TearDown != nil {
		t.Errorf("the first step is %q", first.Name)
	}
}
