package steps

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/kit/events"
	"keelson.dev/services/nodeagent/internal/imagepull"
	"keelson.dev/services/nodeagent/internal/lifecycle"
	"keelson.dev/services/nodeagent/internal/runtime/fake"
)

// ofPods holds the recorded events of several Pods at once.
type ofPods struct {
	mu   sync.Mutex // guards said
	said map[string]recorded
}

func (o *ofPods) Record(pod *corev1.Pod, path string, e events.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	said := o.said[pod.Name]
	said.Record(pod, path, e)
	o.said[pod.Name] = said
}

// of returns the recorded events of a Pod.
func (o *ofPods) of(pod string) recorded {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.said[pod])
}

// pulling starts to get the image of a Pod and returns when the pull is under way; the channel returns the error.
func pulling(ctx context.Context, s *Steps, name string) <-chan error {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i/" + name + ":1"}}}}
	done := make(chan error, 1)
	go func() {
		_, err := s.Image(ctx, pod, lifecycle.Entries(pod)[0], nil)
		done <- err
	}()
	synctest.Wait()
	return done
}

// pullsBegun returns which images the runtime was asked for, after which time.
func pullsBegun(r *fake.Runtime, start time.Time) []string {
	var out []string
	for _, call := range r.Calls() {
		if call.Verb == "PullImage" {
			out = append(out, fmt.Sprint(call.Object, " after ", call.At.Sub(start)))
		}
	}
	return out
}

// No more images are pulled at once than the settings allow, in the order of the requests, and an event
// distinguishes the wait from the pull. (serializeImagePulls and maxParallelImagePulls, KubeletConfiguration
// v1beta1.)
func TestPullsTakeTurns(t *testing.T) {
	yes, no, two := true, false, 2
	for _, row := range []struct {
		name   string
		pulls  imagepull.Settings
		starts [3]time.Duration
	}{
		{"by default", imagepull.Settings{}, [3]time.Duration{0, time.Second, 2 * time.Second}},
		{"one at a time", imagepull.Settings{Serialize: &yes}, [3]time.Duration{0, time.Second, 2 * time.Second}},
		{"two at once", imagepull.Settings{MaxParallel: &two}, [3]time.Duration{0, 0, time.Second}},
		{"all at once", imagepull.Settings{Serialize: &no}, [3]time.Duration{0, 0, 0}},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				images, said, start := fake.New(), &ofPods{said: map[string]recorded{}}, time.Now()
				images.SetDelay("PullImage", time.Second)
				s := New(Config{Images: images, Events: said, Pulls: row.pulls})
				var pods []<-chan error
				for _, name := range []string{"a", "b", "c"} {
					pods = append(pods, pulling(t.Context(), s, name))
				}
				var want []string
				for i, name := range []string{"a", "b", "c"} {
					if err := <-pods[i]; err != nil {
						t.Error(err)
					}
					want = append(want, fmt.Sprintf("docker.io/i/%s:1 after %v", name, row.starts[i]))
					pulled := fmt.Sprintf(`spec.containers{c} Pulled: Successfully pulled image "i/%s:1" in 1s `+
						`(%v including waiting). Image size: 1048576 bytes.`, name, row.starts[i]+time.Second)
					if got := said.of(name); len(got) != 2 || got[1] != pulled {
						t.Errorf("events %q, want the last to be %q", got, pulled)
					}
				}
				if got := pullsBegun(images, start); !slices.Equal(got, want) {
					t.Errorf("the pulls began %q, want %q", got, want)
				}
			})
		})
	}
}

// A Pod deleted while it waits takes no turn, and one deleted during its pull gives its turn back.
func TestTurnOfAPodThatGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		images, start := fake.New(), time.Now()
		images.SetDelay("PullImage", time.Minute)
		s := New(Config{Images: images, Events: &ofPods{said: map[string]recorded{}}})
		running, endRunning := context.WithCancel(t.Context())
		waiting, endWaiting := context.WithCancel(t.Context())
		first, second := pulling(running, s, "first"), pulling(waiting, s, "second")
		last := pulling(t.Context(), s, "last")
		endWaiting()
		if err := <-second; !errors.Is(err, context.Canceled) {
			t.Errorf("the Pod that waited: %v", err)
		}
		time.Sleep(time.Second)
		endRunning()
		if err := <-first; !errors.Is(err, context.Canceled) {
			t.Errorf("the Pod whose image was being pulled: %v", err)
		}
		if err := <-last; err != nil {
			t.Error(err)
		}
		want := []string{"docker.io/i/first:1 after 0s", "docker.io/i/last:1 after 1s"}
		if got := pullsBegun(images, start); !slices.Equal(got, want) {
			t.Errorf("the pulls began %q, want %q", got, want)
		}
	})
}
