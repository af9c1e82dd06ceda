package steps

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"

	"keelson.dev/kit/events"
	"keelson.dev/kit/failpoint"
	"keelson.dev/services/nodeagent/internal/imagepull"
	"keelson.dev/services/nodeagent/internal/lifecycle"
	"keelson.dev/services/nodeagent/internal/podstate"
	"keelson.dev/services/nodeagent/internal/runtime"
)

// Reasons of events about images, as the kubelet names them.
const (
	reasonPulling           = "Pulling"
	reasonPulled            = "Pulled"
	reasonFailed            = "Failed"
	reasonErrImageNeverPull = "ErrImageNeverPull"
	reasonInspectFailed     = "InspectFailed"
)

// wanted is an image that a Pod needs.
type wanted struct {
	pod *corev1.Pod
	// path is the field of the container that uses it; empty for an image volume.
	path string
	// name and policy are the values in the Pod.
	name    string
	policy  corev1.PullPolicy
	ref     reference.Named
	sandbox *cri.PodSandboxConfig
	// credentials returns the credentials for the image's registry in the Pod's Secrets.
	credentials func() []credential
}

// Image makes sure that the container's image is on the node and that the Pod may use it, as its pull policy
// requires. See ImageReason for its errors.
func (s *Steps) Image(ctx context.Context, pod *corev1.Pod, e lifecycle.Entry,
	sandbox *cri.PodSandboxConfig) (runtime.Image, error) {
	return s.image(ctx, wanted{pod: pod, path: e.Path, name: e.Spec.Image, policy: e.Spec.ImagePullPolicy,
		sandbox: sandbox})
}

// VolumeImages does the same for the images that the container mounts as volumes, and returns their IDs by the
// names of the volumes.
func (s *Steps) VolumeImages(ctx context.Context, pod *corev1.Pod, e lifecycle.Entry,
	sandbox *cri.PodSandboxConfig) (map[string]string, error) {
	out := map[string]string{}
	for _, v := range imagesMounted(pod, e.Spec) {
		image, err := s.image(ctx, wanted{pod: pod, name: v.Image.Reference, policy: v.Image.PullPolicy,
			sandbox: sandbox})
		if err != nil {
			if ctx.Err() == nil {
				s.Events.Record(pod, e.Path, events.Warning(reasonFailed, "Error: %s", err))
			}
			return nil, err
		}
		out[v.Name] = image.ID
	}
	return out, nil
}

func (s *Steps) image(ctx context.Context, w wanted) (runtime.Image, error) {
	var err error
	if w.ref, err = qualify(w.name); err != nil {
		s.Events.Record(w.pod, w.path, events.Warning(reasonInspectFailed, "%s", err))
		return runtime.Image{}, err
	}
	image, present, err := s.Images.ImageStatus(ctx, w.ref.String())
	if err != nil {
		return runtime.Image{}, &imageError{reason: podstate.ImageInspectError,
			err: fmt.Errorf("failed to inspect image %q: %w", w.name, err)}
	}
	w.credentials = sync.OnceValue(func() []credential { return s.credentials(ctx, w.pod, w.ref) })
	usable := present && s.Records.MayUse(w.ref, image.ID, imagepull.Shown{Secrets: w.secrets,
		Account: func() *kubeletv1beta1.ImagePullServiceAccount { return s.Providers.Account(ctx, w.pod, w.ref) }})
	switch {
	case pulls(w.policy, w.name, usable):
		return s.pull(ctx, w, image.ID)
	case usable:
		s.Events.Record(w.pod, w.path, events.Normal(reasonPulled,
			"Container image %q already present on machine and can be accessed by the pod", w.name))
		return image, nil
	}
	err = fmt.Errorf("container image %q is not present with pull policy of Never", w.name)
	s.Events.Record(w.pod, w.path, events.Warning(reasonErrImageNeverPull, "%s", err))
	return runtime.Image{}, &imageError{reason: podstate.ErrImageNeverPull, err: err}
}

// secrets returns the Secrets of the credentials.
func (w wanted) secrets() []kubeletv1beta1.ImagePullSecret {
	var out []kubeletv1beta1.ImagePullSecret
	for _, c := range w.credentials() {
		if c.from != nil {
			out = append(out, *c.from)
		}
	}
	return out
}

// pull pulls an image when its turn comes. before is the ID of the image that the node has under the name.
func (s *Steps) pull(ctx context.Context, w wanted, before string) (runtime.Image, error) {
	name := w.name
	s.Events.Record(w.pod, w.path, events.Normal(reasonPulling, "Pulling image %q", name))
	asked := time.Now()
	// Before its turn, which a slow provider would keep from other Pods.
	have, missing := s.allCredentials(ctx, w)
	image, took, err := s.pullInTurn(ctx, w, have, before)
	if err == nil {
		s.Events.Record(w.pod, w.path, events.Normal(reasonPulled,
			"Successfully pulled image %q in %s (%s including waiting). Image size: %d bytes.",
			name, took.Truncate(time.Millisecond), time.Since(asked).Truncate(time.Millisecond), image.Size))
		return image, nil
	}
	if inspect := (*imageError)(nil); errors.As(err, &inspect) {
		return runtime.Image{}, err
	}
	if missing != nil {
		err = fmt.Errorf("%w; the pull without it failed: %w", missing, err)
	}
	if ctx.Err() == nil {
		s.Events.Record(w.pod, w.path, events.Warning(reasonFailed, "Failed to pull image %q: %s", name, err))
		s.Events.Record(w.pod, w.path, events.Warning(reasonFailed, "Error: %s", podstate.ErrImagePull))
	}
	return runtime.Image{}, &imageError{reason: podstate.ErrImagePull, err: fmt.Errorf("%q: %w", name, err)}
}

// pullInTurn pulls when its turn comes, records the outcome, and returns how long the pull took without the wait.
func (s *Steps) pullInTurn(ctx context.Context, w wanted, have []credential, before string) (runtime.Image,
	time.Duration, error) {
	if err := s.turns.Acquire(ctx, 1); err != nil {
		return runtime.Image{}, 0, fmt.Errorf("waiting for other images to be pulled: %w", err)
	}
	defer s.turns.Release(1)
	began := time.Now()
	record, err := s.Records.Begin(w.ref, before)
	if err != nil {
		return runtime.Image{}, 0, err
	}
	by, failed := s.pullWithEach(ctx, w, have)
	took := time.Since(began)
	// The pulled image counts even if its Pod is gone.
	image, present, err := s.Images.ImageStatus(context.WithoutCancel(ctx), w.ref.String())
	switch {
	case err != nil:
		record.Lost()
	case failed == nil && present:
		record.Succeeded(image.ID, imagepull.Credentials{Secret: by.from, Account: by.account})
	default:
		record.Failed(image.ID)
	}
	if failed == nil && err == nil && !present {
		err = fmt.Errorf("image %q went away after it was pulled", w.name)
	}
	if failed == nil && err != nil {
		failed = &imageError{reason: podstate.ImageInspectError, err: err}
	}
	return image, took, failed
}

// pullWithEach tries each of the credentials, and returns those that the registry accepted.
func (s *Steps) pullWithEach(ctx context.Context, w wanted, have []credential) (credential, error) {
	var problems []error
	for _, c := range have {
		err := s.pullWith(ctx, w.ref, c.auth, w.sandbox)
		if err == nil {
			return c, nil
		}
		problems = append(problems, err)
	}
	return credential{}, errors.Join(problems...)
}

func (s *Steps) pullWith(ctx context.Context, ref reference.Named, auth *cri.AuthConfig,
	sandbox *cri.PodSandboxConfig) error {
	return failpoint.Around("nodeagent/image.pull", func() error {
		_, err := s.Images.PullImage(ctx, ref.String(), auth, sandbox)
		return err
	})
}

// allCredentials returns the credentials with which to try a pull, in this order: those in the Pod's Secrets, then
// those of credential providers; if there are none, an attempt without. The error is about providers that gave none:
// the image may be public, or others' credentials suffice.
func (s *Steps) allCredentials(ctx context.Context, w wanted) ([]credential, error) {
	all := slices.Clone(w.credentials())
	provided, err := s.Providers.Credentials(ctx, w.pod, w.ref)
	for _, c := range provided {
		all = append(all, credential{account: c.Account,
			auth: &cri.AuthConfig{Username: c.Username, Password: c.Password}})
	}
	if len(all) == 0 {
		return []credential{{}}, err
	}
	return all, err
}

// credentials returns the credentials for the image's registry in the Pod's imagePullSecrets. It reports Secrets that
// are missing or unreadable, and leaves them out: the image may be public.
func (s *Steps) credentials(ctx context.Context, pod *corev1.Pod, ref reference.Named) []credential {
	var out []credential
	for _, name := range pod.Spec.ImagePullSecrets {
		secret, err := s.Objects.Secret(ctx, pod.Namespace, name.Name)
		if err != nil {
			s.Events.Record(pod, "", events.Warning("FailedToRetrieveImagePullSecret",
				"Unable to retrieve some image pull secrets (%s); attempting to pull the image may not succeed.",
				name.Name))
			continue
		}
		out = append(out, credentialsIn(secret, ref)...)
	}
	return out
}
