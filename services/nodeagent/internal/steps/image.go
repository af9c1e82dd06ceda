package steps

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"keelson.dev/kit/events"
	"keelson.dev/kit/failpoint"
	"keelson.dev/services/nodeagent/internal/lifecycle"
	"keelson.dev/services/nodeagent/internal/podstate"
	"keelson.dev/services/nodeagent/internal/runtime"
)

// Reasons of events about images, in the field's words.
const (
	reasonPulling           = "Pulling"
	reasonPulled            = "Pulled"
	reasonFailed            = "Failed"
	reasonErrImageNeverPull = "ErrImageNeverPull"
	reasonInspectFailed     = "InspectFailed"
)

// Image makes sure that the container's image is on the node, as its pull policy says. See ImageReason for its errors.
func (s *Steps) Image(ctx context.Context, pod *corev1.Pod, e lifecycle.Entry,
	sandbox *cri.PodSandboxConfig) (runtime.Image, error) {
	ref, err := qualify(e.Spec.Image)
	if err != nil {
		s.Events.Record(pod, e.Path, events.Warning(reasonInspectFailed, "%s", err))
		return runtime.Image{}, err
	}
	image, present, err := s.Images.ImageStatus(ctx, ref.String())
	if err != nil {
		return runtime.Image{}, &imageError{reason: podstate.ImageInspectError,
			err: fmt.Errorf("failed to inspect image %q: %w", e.Spec.Image, err)}
	}
	switch {
	case pulls(e.Spec.ImagePullPolicy, e.Spec.Image, present):
		return s.pull(ctx, pod, e, ref, sandbox)
	case present:
		s.Events.Record(pod, e.Path, events.Normal(reasonPulled, "Container image %q already present on machine",
			e.Spec.Image))
		return image, nil
	}
	err = fmt.Errorf("container image %q is not present with pull policy of Never", e.Spec.Image)
	s.Events.Record(pod, e.Path, events.Warning(reasonErrImageNeverPull, "%s", err))
	return runtime.Image{}, &imageError{reason: podstate.ErrImageNeverPull, err: err}
}

// pull fetches an image, with each of the Pod's credentials for its registry in turn, and without any if there is none.
func (s *Steps) pull(ctx context.Context, pod *corev1.Pod, e lifecycle.Entry, ref reference.Named,
	sandbox *cri.PodSandboxConfig) (runtime.Image, error) {
	s.Events.Record(pod, e.Path, events.Normal(reasonPulling, "Pulling image %q", e.Spec.Image))
	began := time.Now()
	var problems []error
	for _, auth := range s.credentials(ctx, pod, ref) {
		err := s.pullWith(ctx, ref, auth, sandbox)
		if err == nil {
			return s.pulled(ctx, pod, e, ref, time.Since(began))
		}
		problems = append(problems, err)
	}
	err := errors.Join(problems...)
	if ctx.Err() == nil {
		s.Events.Record(pod, e.Path, events.Warning(reasonFailed, "Failed to pull image %q: %s", e.Spec.Image, err))
		s.Events.Record(pod, e.Path, events.Warning(reasonFailed, "Error: %s", podstate.ErrImagePull))
	}
	return runtime.Image{}, &imageError{reason: podstate.ErrImagePull, err: fmt.Errorf("%q: %w", e.Spec.Image, err)}
}

func (s *Steps) pullWith(ctx context.Context, ref reference.Named, auth *cri.AuthConfig,
	sandbox *cri.PodSandboxConfig) error {
	return failpoint.Around("nodeagent/image.pull", func() error {
		_, err := s.Images.PullImage(ctx, ref.String(), auth, sandbox)
		return err
	})
}

func (s *Steps) pulled(ctx context.Context, pod *corev1.Pod, e lifecycle.Entry, ref reference.Named,
	took time.Duration) (runtime.Image, error) {
	image, present, err := s.Images.ImageStatus(ctx, ref.String())
	if err == nil && !present {
		err = fmt.Errorf("image %q went away after it was pulled", e.Spec.Image)
	}
	if err != nil {
		return runtime.Image{}, &imageError{reason: podstate.ImageInspectError, err: err}
	}
	took = took.Truncate(time.Millisecond)
	s.Events.Record(pod, e.Path, events.Normal(reasonPulled,
		"Successfully pulled image %q in %s (%s including waiting). Image size: %d bytes.",
		e.Spec.Image, took, took, image.Size))
	return image, nil
}

// credentials returns what the Pod's imagePullSecrets say about the image's registry. Secrets that cannot be had or
// read are reported and left out: the image may be public.
func (s *Steps) credentials(ctx context.Context, pod *corev1.Pod, ref reference.Named) []*cri.AuthConfig {
	var out []*cri.AuthConfig
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
	if len(out) == 0 {
		return []*cri.AuthConfig{nil}
	}
	return out
}
