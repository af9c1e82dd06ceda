package steps

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/events"
	"keelson.dev/services/nodeagent/internal/lifecycle"
	"keelson.dev/services/nodeagent/internal/runtime/fake"
)

// recorded holds the recorded events: "path reason: message".
type recorded []string

func (t *recorded) Record(_ *corev1.Pod, path string, e events.Event) {
	*t = append(*t, path+" "+e.Reason+": "+e.Message)
}

// POD-221 POD-222: the events of an image have its reference as in the Pod.
func TestImageEvents(t *testing.T) {
	for _, r := range []struct {
		name   string
		policy corev1.PullPolicy
		has    bool
		err    error
		want   []string
	}{
		{name: "pulled", policy: corev1.PullIfNotPresent, want: []string{
			`Pulling: Pulling image "busybox:1.28"`,
			`Pulled: Successfully pulled image "busybox:1.28" in 1.5s (1.5s including waiting). Image size: 1048576 bytes.`}},
		{name: "present", policy: corev1.PullIfNotPresent, has: true, want: []string{
			`Pulled: Container image "busybox:1.28" already present on machine and can be accessed by the pod`}},
		{name: "never pulled", policy: corev1.PullNever, want: []string{
			`ErrImageNeverPull: container image "busybox:1.28" is not present with pull policy of Never`}},
		{name: "not there", policy: corev1.PullAlways, err: errors.New("no such image"), want: []string{
			`Pulling: Pulling image "busybox:1.28"`,
			`Failed: Failed to pull image "busybox:1.28": no such image`,
			`Failed: Error: ErrImagePull`}},
	} {
		t.Run(r.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				images := fake.New()
				if r.has {
					images = fake.New("docker.io/library/busybox:1.28")
				}
				images.SetDelay("PullImage", 1500*time.Millisecond)
				if r.err != nil {
					images.Fail("PullImage", r.err)
				}
				pod := &corev1.Pod{Spec: corev1.PodSpec{InitContainers: []corev1.Container{
					{Name: "init-myservice", Image: "busybox:1.28", ImagePullPolicy: r.policy}}}}
				var got recorded
				_, err := New(Config{Images: images, Events: &got}).Image(t.Context(), pod, lifecycle.Entries(pod)[0],
					nil)
				if fails := r.err != nil || r.policy == corev1.PullNever; fails != (err != nil) {
					t.Errorf("error %v, want one: %v", err, fails)
				}
				want := make(recorded, 0, len(r.want))
				for _, line := range r.want {
					want = append(want, "spec.initContainers{init-myservice} "+line)
				}
				if !slices.Equal(got, want) {
					t.Errorf("events:\n  got  %q\n  want %q", got, want)
				}
			})
		})
	}
}
