package steps

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientfake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/podview"
	"keelson.dev/services/nodeagent/internal/objectcache"
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
	named := corev1.PodResourceClaim{Name: "gpu", ResourceClaimName: ptr.To("gpu")}
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "gpu"}}
	allocated := claim.DeepCopy()
	allocated.Status.Allocation = &resourcev1.AllocationResult{}
	for name, row := range map[string]struct {
		claims []corev1.PodResourceClaim
		there  []apiruntime.Object
		fails  error
		want   string
	}{
		"no claim": {},
		"missing":  {[]corev1.PodResourceClaim{named}, nil, nil, "ResourceClaim gpu does not exist"},
		"not allocated": {[]corev1.PodResourceClaim{named}, []apiruntime.Object{claim}, nil,
			"ResourceClaim gpu is not allocated"},
		"allocated": {[]corev1.PodResourceClaim{named}, []apiruntime.Object{allocated}, nil, podview.Unprepared},
		"not made yet": {[]corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: ptr.To("t")}}, nil, nil,
			"the Pod's ResourceClaim for gpu was not made yet of ResourceClaimTemplate t"},
		"nobody knows": {[]corev1.PodResourceClaim{named}, nil, errors.New("no answer"),
			"reading ResourceClaim gpu: no answer"},
	} {
		client := clientfake.NewClientset(row.there...)
		if row.fails != nil {
			client.PrependReactor("get", "resourceclaims", func(clienttesting.Action) (bool, apiruntime.Object, error) {
				return true, nil, row.fails
			})
		}
		s := New(Config{Objects: objectcache.New(t.Context(), client, func(types.UID) {})})
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default"},
			Spec: corev1.PodSpec{ResourceClaims: row.claims}}
		_, err := s.awaitClaims(t.Context(), pod)
		if row.want == "" && err != nil || row.want != "" && (err == nil || !strings.HasPrefix(err.Error(), row.want)) {
			t.Errorf("%s: %v, want %q", name, err, row.want)
		}
	}
	if first := (&Steps{}).Preparation()[0]; first.Name != "claims" || first.TearDown != nil {
		t.Errorf("the first step is %q", first.Name)
	}
}
