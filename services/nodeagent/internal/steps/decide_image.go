package steps

import (
	"errors"
	"fmt"
	"slices"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/nodeagent/internal/podstate"
)

// imageError is why a container cannot get an image; reason is its waiting reason.
type imageError struct {
	reason string
	err    error
}

func (e *imageError) Error() string { return e.err.Error() }
func (e *imageError) Unwrap() error { return e.err }

// ImageReason returns the waiting reason of a container that cannot get its image.
func ImageReason(err error) string {
	if e := (*imageError)(nil); errors.As(err, &e) {
		return e.reason
	}
	return podstate.ErrImagePull
}

// pulls reports whether an image must be pulled, given the pull policy and whether the Pod may use it from the
// node.
func pulls(policy corev1.PullPolicy, image string, usable bool) bool {
	if policy == "" {
		policy = defaultPolicy(image)
	}
	return policy == corev1.PullAlways || policy == corev1.PullIfNotPresent && !usable
}

// defaultPolicy returns the API server's default; static Pods do not pass through the API server.
func defaultPolicy(image string) corev1.PullPolicy {
	if ref, err := reference.ParseNormalizedNamed(image); err == nil {
		if tagged, ok := reference.TagNameOnly(ref).(reference.Tagged); ok && tagged.Tag() == "latest" {
			return corev1.PullAlways
		}
	}
	return corev1.PullIfNotPresent
}

// qualify completes an image name as container runtimes do: the registry docker.io, its folder library, the tag
// latest.
func qualify(image string) (reference.Named, error) {
	ref, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return nil, &imageError{reason: podstate.InvalidImageName,
			err: fmt.Errorf("failed to apply default image tag %q: couldn't parse image name %q: %w", image, image,
				err)}
	}
	return reference.TagNameOnly(ref), nil
}

// imagesMounted returns the image volumes of the Pod that the container mounts, each once.
func imagesMounted(pod *corev1.Pod, container *corev1.Container) []*corev1.Volume {
	var out []*corev1.Volume
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		mounts := func(m corev1.VolumeMount) bool { return m.Name == v.Name }
		if v.Image != nil && slices.ContainsFunc(container.VolumeMounts, mounts) {
			out = append(out, v)
		}
	}
	return out
}
