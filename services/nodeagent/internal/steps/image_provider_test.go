package steps

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"keelson.dev/services/nodeagent/internal/credentialprovider"
	"keelson.dev/services/nodeagent/internal/lifecycle"
	"keelson.dev/services/nodeagent/internal/objectcache"
	"keelson.dev/services/nodeagent/internal/podstate"
)

// observes counts nothing.
type observes struct{}

func (observes) PluginRan(string, time.Duration, bool) {}

// provides gives the node a provider for reg.io, which is a shell script. further are fields of its configuration.
func (n *node) provides(script string, further ...string) {
	n.Helper()
	dir := n.TempDir()
	config := filepath.Join(dir, "providers.yaml")
	text := "apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\nproviders:\n- name: plugin\n" +
		"  matchImages: [reg.io]\n  defaultCacheDuration: 0s\n  apiVersion: credentialprovider.kubelet.k8s.io/v1\n  " +
		strings.Join(further, "\n  ")
	// A process that is started meanwhile would have the script open for writing.
	syscall.ForkLock.RLock()
	err := errors.Join(os.WriteFile(config, []byte(text), 0o600),
		os.WriteFile(filepath.Join(dir, "plugin"), []byte("#!/bin/sh\n"+script+"\n"), 0o700))
	syscall.ForkLock.RUnlock()
	if err != nil {
		n.Fatal(err)
	}
	n.steps.Providers, err = credentialprovider.Open(n.Context(), credentialprovider.Config{
		Settings: credentialprovider.Settings{Config: config, BinDir: dir}, Log: zap.NewNop(), Accounts: n.objects,
		Observer: observes{}})
	if err != nil {
		n.Fatal(err)
	}
}

// answering is a script that gives a password for reg.io.
func answering(password string) string {
	return `echo '{"kind": "CredentialProviderResponse", "apiVersion": "credentialprovider.kubelet.k8s.io/v1",
		"cacheKeyType": "Image", "auth": {"reg.io": {"username": "u", "password": "` + password + `"}}}'`
}

// passwords returns the passwords of all pulls.
func (n *node) passwords() *[]string {
	var seen []string
	n.images.SetRegistry(func(_ string, auth *cri.AuthConfig) error {
		seen = append(seen, auth.GetPassword())
		if auth.GetPassword() != "right" {
			return errors.New("401 Unauthorized")
		}
		return nil
	})
	return &seen
}

// A Pod's Secrets are tried before what providers give; without either, there is one attempt without credentials.
func TestOrderOfCredentials(t *testing.T) {
	for _, row := range []struct{ script, secret, reason, want string }{
		{answering("right"), "", "", "right"},
		{answering("bad"), "right", "", "right"},
		{answering("right"), "wrong", "", "wrong right"},
		{answering("bad"), "wrong", podstate.ErrImagePull, "wrong bad"},
		{"exit 1", "right", "", "right"},
		{"exit 1", "wrong", podstate.ErrImagePull, "wrong"},
		{"exit 1", "", podstate.ErrImagePull, ""},
	} {
		n := newNode(t)
		n.provides(row.script)
		seen := n.passwords()
		n.expect(corev1.PullIfNotPresent, row.secret, row.reason, len(strings.Split(row.want, " ")))
		if got := strings.Join(*seen, " "); got != row.want {
			t.Errorf("%s with secret %q: the passwords %q were tried, want %q", row.script, row.secret, got, row.want)
		}
	}
}

// An image that came by the node's own credentials is for all of its Pods; a Pod does not get that of another Pod's
// Secret for it, unless the node's credentials open it too.
func TestNodesCredentialsAreForAllPods(t *testing.T) {
	n := newNode(t)
	n.expect(corev1.PullIfNotPresent, "right", "", 1)
	n.provides(answering("bad"))
	n.expect(corev1.PullIfNotPresent, "", podstate.ErrImagePull, 1)
	n.expect(corev1.PullNever, "", podstate.ErrImageNeverPull, 0)
	n.provides(answering("right"))
	n.expect(corev1.PullNever, "", podstate.ErrImageNeverPull, 0)
	n.expect(corev1.PullIfNotPresent, "", "", 1)
	n.restart()
	n.expect(corev1.PullNever, "", "", 0)
	n.expect(corev1.PullIfNotPresent, "wrong", "", 0)
}

// A Pod whose provider fails gets one message that says why, and an image that needs no credentials.
func TestProviderFails(t *testing.T) {
	n := newNode(t)
	n.provides("echo no role for this machine >&2; exit 3")
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "u"}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "c", Image: "reg.io/private:1"}}}}
	said := &recorded{}
	n.steps.Events = said
	_, err := n.steps.Image(t.Context(), pod, lifecycle.Entries(pod)[0], nil)
	const want = `credential provider "plugin" ended with status 3: no role for this machine; the pull without it ` +
		`failed: 401 Unauthorized`
	if err == nil || err.Error() != `"reg.io/private:1": `+want || ImageReason(err) != podstate.ErrImagePull {
		t.Errorf("reason %s: %v", ImageReason(err), err)
	}
	const path = "spec.containers{c} "
	if !slices.Equal(*said, []string{path + `Pulling: Pulling image "reg.io/private:1"`,
		path + `Failed: Failed to pull image "reg.io/private:1": ` + want, path + "Failed: Error: ErrImagePull"}) {
		t.Errorf("the events are %q", *said)
	}
	n.images.SetRegistry(nil)
	n.expect(corev1.PullIfNotPresent, "", "", 1)
}

// A provider that takes its time keeps no other Pod from its pull.
func TestSlowProviderHoldsNobodyUp(t *testing.T) {
	n := newNode(t)
	goOn := filepath.Join(t.TempDir(), "go")
	n.provides("until [ -e " + goOn + " ]; do sleep 0.02; done; " + answering("right"))
	n.images.SetRegistry(nil)
	pull := func(uid types.UID, image string) error {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: string(uid), UID: uid},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: image}}}}
		_, err := n.steps.Image(t.Context(), pod, lifecycle.Entries(pod)[0], nil)
		return err
	}
	slow := make(chan error)
	n.steps.Events = &ofPods{said: map[string]recorded{}}
	go func() { slow <- pull("slow", "reg.io/private:1") }()
	if err := pull("other", "other.io/a:1"); err != nil {
		t.Error(err)
	}
	select {
	case err := <-slow:
		t.Errorf("the provider was not awaited: %v", err)
	default:
	}
	if err := os.WriteFile(goOn, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := <-slow; err != nil {
		t.Error(err)
	}
}

// What a provider gives for a service account opens the image for Pods of that account alone.
func TestAccountsCredentials(t *testing.T) {
	n := newNode(t)
	client := kubefake.NewClientset(
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "1"}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "b", UID: "2"}})
	client.PrependReactor("create", "serviceaccounts", func(action clienttesting.Action) (bool, apiruntime.Object,
		error) {
		request, ok := action.(clienttesting.CreateAction).GetObject().(*authenticationv1.TokenRequest)
		if !ok || action.GetSubresource() != "token" || !slices.Equal(request.Spec.Audiences, []string{"registry"}) ||
			request.Spec.BoundObjectRef.Name != "p" || *request.Spec.ExpirationSeconds != 3600 {
			t.Errorf("requested %+v", action)
		}
		request.Status = authenticationv1.TokenRequestStatus{Token: "the-token",
			ExpirationTimestamp: metav1.NewTime(time.Now().Add(time.Hour))}
		return true, request, nil
	})
	n.objects = objectcache.New(t.Context(), client, func(types.UID) {})
	provide := func() {
		n.restart()
		n.provides(`grep -q the-token && `+answering("right"),
			"tokenAttributes: {serviceAccountTokenAudience: registry, "+
				"cacheType: ServiceAccount, requireServiceAccount: true}")
	}
	image := func(policy corev1.PullPolicy, account string) string {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: types.UID("u" + account)},
			Spec: corev1.PodSpec{ServiceAccountName: account, Containers: []corev1.Container{{Name: "c",
				Image: "reg.io/private:1", ImagePullPolicy: policy}}}}
		before := n.pulls()
		_, err := n.steps.Image(t.Context(), pod, lifecycle.Entries(pod)[0], nil)
		got := strings.Repeat("pull ", n.pulls()-before)
		if err != nil {
			return got + ImageReason(err)
		}
		return got + "ok"
	}
	provide()
	for _, row := range []struct {
		policy        corev1.PullPolicy
		account, want string
	}{
		{corev1.PullIfNotPresent, "", "pull ErrImagePull"}, // no account: the provider is not asked
		{corev1.PullIfNotPresent, "a", "pull ok"},
		{corev1.PullIfNotPresent, "a", "ok"},
		{corev1.PullNever, "a", "ok"},
		{corev1.PullNever, "b", podstate.ErrImageNeverPull},
		{corev1.PullNever, "", podstate.ErrImageNeverPull},
		{corev1.PullIfNotPresent, "", "pull ErrImagePull"},
		{corev1.PullIfNotPresent, "b", "pull ok"},
		{corev1.PullNever, "b", "ok"},
		{corev1.PullNever, "a", "ok"},
	} {
		if got := image(row.policy, row.account); got != row.want {
			t.Errorf("%s with account %q: %s, want %s", row.policy, row.account, got, row.want)
		}
		provide() // another agent
	}
	n.restart() // without providers
	n.steps.Providers = nil
	if got := image(corev1.PullNever, "a"); got != podstate.ErrImageNeverPull {
		t.Errorf("without the provider: %s", got)
	}
}
