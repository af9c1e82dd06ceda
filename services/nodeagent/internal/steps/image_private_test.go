package steps

import (
	"errors"
	"testing"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kubefake "k8s.io/client-go/kubernetes/fake"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"keelson.dev/kit/failpoint"
	"keelson.dev/services/nodeagent/internal/imagepull"
	"keelson.dev/services/nodeagent/internal/lifecycle"
	"keelson.dev/services/nodeagent/internal/objectcache"
	"keelson.dev/services/nodeagent/internal/podstate"
	"keelson.dev/services/nodeagent/internal/runtime"
	"keelson.dev/services/nodeagent/internal/runtime/fake"
)

// node provides Pods with images of a registry that accepts the password "right".
type node struct {
	*testing.T
	images  *fake.Runtime
	objects *objectcache.Cache
	records string
	steps   *Steps
}

// newNode has the Secrets right, copy and wrong in the namespace ns, each with credentials for reg.io.
func newNode(t *testing.T) *node {
	t.Helper()
	var secrets []*corev1.Secret
	for name, password := range map[string]string{"right": "right", "copy": "right", "wrong": "wrong"} {
		// Immutable Secrets are not watched: the client in memory would report all Secrets at once.
		secrets = append(secrets, &corev1.Secret{Type: corev1.SecretTypeDockerConfigJson, Immutable: new(true),
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name)},
			Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(
				`{"auths":{"reg.io":{"username":"u","password":"` + password + `"}}}`)}})
	}
	client := kubefake.NewClientset(secrets[0], secrets[1], secrets[2])
	n := &node{T: t, images: fake.New(), records: t.TempDir(),
		objects: objectcache.New(t.Context(), client, func(types.UID) {})}
	n.images.SetRegistry(func(_ string, auth *cri.AuthConfig) error {
		if auth.GetPassword() != "right" {
			return errors.New("401 Unauthorized")
		}
		return nil
	})
	n.restart()
	return n
}

// restart starts another agent.
func (n *node) restart() {
	n.Helper()
	records, err := imagepull.OpenRecords(n.records, imagepull.Settings{}, zap.NewNop())
	if err == nil {
		err = records.Recover(func() ([]runtime.Image, error) { return n.images.ListImages(n.Context()) })
	}
	if err != nil {
		n.Fatal(err)
	}
	n.steps = New(Config{Images: n.images, Objects: n.objects, Records: records, Events: &recorded{}})
}

// expect starts a container of reg.io/private with the Secret, empty for none, and checks the waiting reason, empty
// for none, and how often the image was pulled.
func (n *node) expect(policy corev1.PullPolicy, secret, reason string, pulls int) {
	n.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "u"}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "c", Image: "reg.io/private:1", ImagePullPolicy: policy}}}}
	if secret != "" {
		pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: secret}}
	}
	n.objects.Register(pod)
	defer n.objects.Unregister(pod.UID)
	before := n.pulls()
	_, err := n.steps.Image(n.Context(), pod, lifecycle.Entries(pod)[0], nil)
	got := ""
	if err != nil {
		got = ImageReason(err)
	}
	if n.pulls()-before != pulls || got != reason {
		n.Errorf("policy %q with secret %q: %q (%v) after %d pulls, want %q after %d", policy, secret, got, err,
			n.pulls()-before, reason, pulls)
	}
	const never = `container image "reg.io/private:1" is not present with pull policy of Never`
	if got == podstate.ErrImageNeverPull && err.Error() != never {
		n.Errorf("the message is %q, want %q", err, never)
	}
}

func (n *node) pulls() int {
	count := 0
	for _, call := range n.images.Calls() {
		if call.Verb == "PullImage" {
			count++
		}
	}
	return count
}

// A Pod does not get a private image that was pulled with another Pod's credentials, unless it has them too or the
// registry lets it pull; that also holds after a restart of the agent.
func TestPrivateImagesAreForPodsWithCredentials(t *testing.T) {
	n := newNode(t)
	n.expect(corev1.PullIfNotPresent, "right", "", 1)
	for range 2 {
		n.expect(corev1.PullIfNotPresent, "", podstate.ErrImagePull, 1)
		n.expect(corev1.PullIfNotPresent, "wrong", podstate.ErrImagePull, 1)
		n.expect(corev1.PullNever, "", podstate.ErrImageNeverPull, 0)
		n.expect(corev1.PullNever, "wrong", podstate.ErrImageNeverPull, 0)
		n.expect(corev1.PullIfNotPresent, "right", "", 0)
		n.expect(corev1.PullIfNotPresent, "copy", "", 0)
		n.expect(corev1.PullNever, "right", "", 0)
		n.restart()
	}
	n.images.SetRegistry(nil) // the image becomes public
	n.expect(corev1.PullNever, "", podstate.ErrImageNeverPull, 0)
	n.expect(corev1.PullIfNotPresent, "", "", 1)
	n.expect(corev1.PullNever, "", "", 0)
	n.restart()
	n.expect(corev1.PullIfNotPresent, "wrong", "", 0)
}

// All Pods may use an image that was on the node before, also after a Pod's pull of it has failed.
func TestPreloadedImagesAreForAll(t *testing.T) {
	n := newNode(t)
	preload := &cri.AuthConfig{Password: "right"}
	if _, err := n.images.PullImage(t.Context(), "reg.io/private:1", preload, nil); err != nil {
		t.Fatal(err)
	}
	n.expect(corev1.PullNever, "", "", 0)
	n.expect(corev1.PullAlways, "wrong", podstate.ErrImagePull, 1)
	n.expect(corev1.PullNever, "", "", 0)
	n.expect(corev1.PullIfNotPresent, "", "", 0)
}

// No Pod may use, without credentials, an image that came although the pull's outcome is unknown.
func TestImageOfALostPull(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		n := newNode(t)
		if err := failpoint.Arm("nodeagent/image.pull.after", "1*error(connection lost)"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { failpoint.Disarm("nodeagent/image.pull.after") })
		if restarts {
			// The runtime does not report what is there after the pull: an agent that ended would not know either.
			n.images.Fail("ImageStatus", nil, errors.New("down"))
		}
		n.expect(corev1.PullIfNotPresent, "right", podstate.ErrImagePull, 1)
		if restarts {
			n.restart()
		}
		n.expect(corev1.PullNever, "", podstate.ErrImageNeverPull, 0)
		n.expect(corev1.PullNever, "right", podstate.ErrImageNeverPull, 0)
		n.expect(corev1.PullIfNotPresent, "right", "", 1)
		n.expect(corev1.PullNever, "right", "", 0)
		n.expect(corev1.PullNever, "", podstate.ErrImageNeverPull, 0)
	}
}

// A pull whose intent cannot be saved does not begin.
func TestPullNeedsItsIntent(t *testing.T) {
	n := newNode(t)
	if err := failpoint.Arm("nodeagent/image.intend.before", "1*error(no space)"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { failpoint.Disarm("nodeagent/image.intend.before") })
	n.expect(corev1.PullIfNotPresent, "right", podstate.ErrImagePull, 0)
	n.expect(corev1.PullIfNotPresent, "right", "", 1)
}

// Credentials that differ in any part have other hashes.
func TestHashOfCredentials(t *testing.T) {
	seen := map[string]bool{}
	for _, auth := range []*cri.AuthConfig{{}, {Username: "ab"}, {Username: "a", Password: "b"}, {Password: "ab"},
		{IdentityToken: "ab"}} {
		hash := hashOf(auth)
		if seen[hash] || len(hash) != 64 {
			t.Errorf("%v has the hash %q", auth, hash)
		}
		seen[hash] = true
	}
}
