package steps

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/nodeagent/internal/lifecycle"
	"keelson.dev/services/nodeagent/internal/podstate"
	"keelson.dev/services/nodeagent/internal/runtime/fake"
)

// Image volumes are pulled by their own policy, with the events of any image, and only those that the container
// mounts, each once; a missing one makes the container wait with the reason of an image.
func TestVolumeImages(t *testing.T) {
	const missing = "docker.io/library/data:1"
	const pulled = ` Pulled: Successfully pulled image "data:1" in 0s (0s including waiting). ` +
		`Image size: 1048576 bytes.`
	const absent = `container image "data:1" is not present with pull policy of Never`
	volume := func(name, ref string, policy corev1.PullPolicy) corev1.Volume {
		return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			Image: &corev1.ImageVolumeSource{Reference: ref, PullPolicy: policy}}}
	}
	for _, r := range []struct {
		name   string
		volume corev1.Volume
		err    error
		want   map[string]string
		reason string
		events []string
	}{
		{name: "pulled", volume: volume("data", "data:1", corev1.PullIfNotPresent),
			want: map[string]string{"data": "sha256:" + missing}, events: []string{
				` Pulling: Pulling image "data:1"`,
				pulled}},
		{name: "present", volume: volume("data", "busybox:1", corev1.PullNever),
			want: map[string]string{"data": "sha256:docker.io/library/busybox:1"}, events: []string{
				` Pulled: Container image "busybox:1" already present on machine and can be accessed by the pod`}},
		{name: "never pulled", volume: volume("data", "data:1", corev1.PullNever), reason: podstate.ErrImageNeverPull,
			events: []string{
				` ErrImageNeverPull: ` + absent,
				`spec.containers{app} Failed: Error: ` + absent}},
		{name: "not there", volume: volume("data", "data:1", ""), err: errors.New("no such image"),
			reason: podstate.ErrImagePull, events: []string{
				` Pulling: Pulling image "data:1"`,
				` Failed: Failed to pull image "data:1": no such image`,
				` Failed: Error: ErrImagePull`,
				`spec.containers{app} Failed: Error: "data:1": no such image`}},
		{name: "no name of an image", volume: volume("data", "No Such", ""), reason: podstate.InvalidImageName},
		{name: "not mounted", volume: volume("other", "data:1", "")},
		{name: "no image", volume: corev1.Volume{Name: "data"}},
	} {
		t.Run(r.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				images := fake.New("docker.io/library/busybox:1")
				if r.err != nil {
					images.Fail("PullImage", r.err)
				}
				pod := &corev1.Pod{Spec: corev1.PodSpec{Volumes: []corev1.Volume{r.volume},
					Containers: []corev1.Container{{Name: "app", Image: "busybox:1", VolumeMounts: []corev1.VolumeMount{
						{Name: "data", MountPath: "/a"}, {Name: "data", MountPath: "/b"}}}}}}
				var got recorded
				ids, err := New(Config{Images: images, Events: &got}).VolumeImages(t.Context(), pod,
					lifecycle.Entries(pod)[0], nil)
				if !maps.Equal(ids, r.want) || (err != nil) != (r.reason != "") {
					t.Errorf("%v, %v, want %v", ids, err, r.want)
				}
				if err != nil && ImageReason(err) != r.reason {
					t.Errorf("it waits with %s, want %s", ImageReason(err), r.reason)
				}
				if r.reason != podstate.InvalidImageName && !slices.Equal(got, r.events) {
					t.Errorf("events:\n  got  %q\n  want %q", got, r.events)
				}
			})
		})
	}
}
