package bind

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// patches collects what a Statuses writes.
type patches struct {
	mu     sync.Mutex
	bodies []patch
	answer error
	failed []error
}

// patch is a written body, as far as the tests read it.
type patch struct {
	Metadata metav1.ObjectMeta
	Status   corev1.PodStatus
}

// write calls set before the writers start, and returns what they wrote.
func write(t *testing.T, answer error, set func(*Statuses)) *patches {
	t.Helper()
	got := &patches{answer: answer}
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		client.PrependReactor("patch", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
			got.mu.Lock()
			defer got.mu.Unlock()
			var body patch
			if err := json.Unmarshal(a.(clienttesting.PatchAction).GetPatch(), &body); err != nil {
				t.Error(err)
			}
			if a.GetSubresource() != "status" {
				t.Errorf("patched subresource %q", a.GetSubresource())
			}
			got.bodies = append(got.bodies, body)
			return true, pod("p"), got.answer
		})
		s := NewStatuses(client.CoreV1(), &Terms{}, func(_ *corev1.Pod, err error) {
			got.mu.Lock()
			defer got.mu.Unlock()
			got.failed = append(got.failed, err)
		})
		set(s)
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() {
			s.Run(ctx)
			close(done)
		}()
		synctest.Wait()
		cancel()
		<-done
	})
	return got
}

func unschedulable(message string) corev1.PodCondition {
	return corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable",
		Message: message}
}

func saying(message string, since time.Time) *corev1.Pod {
	p := pod("p")
	c := unschedulable(message)
	c.LastTransitionTime = metav1.NewTime(since)
	p.Status.Conditions = []corev1.PodCondition{c}
	return p
}

// SCH-033, POD-107, POD-108: the condition that users read, for the version of the Pod that it was decided for.
func TestStatusIsWritten(t *testing.T) {
	got := write(t, nil, func(s *Statuses) { s.Set(pod("p"), unschedulable("m"), "", noon) })
	if len(got.bodies) != 1 {
		t.Fatalf("%d patches", len(got.bodies))
	}
	b := got.bodies[0]
	if b.Metadata.UID != "uid-p" || b.Metadata.ResourceVersion != "7" {
		t.Errorf("patches %+v, want the UID and version that was decided for", b.Metadata)
	}
	want := unschedulable("m")
	want.LastTransitionTime = metav1.NewTime(noon)
	if len(b.Status.Conditions) != 1 || !b.Status.Conditions[0].LastTransitionTime.Equal(&want.LastTransitionTime) ||
		b.Status.Conditions[0].Message != "m" {
		t.Errorf("writes %+v", b.Status.Conditions)
	}
}

func TestStatusIsWrittenOnlyWhenItChanges(t *testing.T) {
	hour := noon.Add(-time.Hour)
	for name, test := range map[string]struct {
		set   func(*Statuses)
		want  []string
		since time.Time
	}{
		"the same": {func(s *Statuses) { s.Set(saying("m", hour), unschedulable("m"), "", noon) }, nil,
			noon},
		"another message, since then": {func(s *Statuses) { s.Set(saying("m", hour), unschedulable("n"), "", noon) },
			[]string{"n"}, hour},
		"only the newest": {func(s *Statuses) {
			s.Set(pod("p"), unschedulable("m"), "", noon)
			s.Set(pod("p"), unschedulable("n"), "", noon)
		}, []string{"n"}, noon},
		"what was wanted holds already": {func(s *Statuses) {
			s.Set(saying("m", hour), unschedulable("n"), "", noon)
			s.Set(saying("m", hour), unschedulable("m"), "", noon)
		}, nil, noon},
		"placed meanwhile": {func(s *Statuses) {
			s.Set(pod("p"), unschedulable("m"), "", noon)
			s.Drop("uid-p")
		}, nil, noon},
		"two Pods": {func(s *Statuses) {
			s.Set(pod("p"), unschedulable("m"), "", noon)
			s.Set(pod("q"), unschedulable("m"), "", noon)
		}, []string{"m", "m"}, noon},
	} {
		t.Run(name, func(t *testing.T) {
			var messages []string
			for _, b := range write(t, nil, test.set).bodies {
				c := b.Status.Conditions[0]
				messages = append(messages, c.Message)
				if !c.LastTransitionTime.Time.Equal(test.since) {
					t.Errorf("holds since %s, want %s", c.LastTransitionTime, test.since)
				}
			}
			if len(messages) != len(test.want) || len(messages) > 0 && messages[0] != test.want[0] {
				t.Errorf("wrote %q, want %q", messages, test.want)
			}
		})
	}
}

func TestStatusFailures(t *testing.T) {
	set := func(s *Statuses) { s.Set(pod("p"), unschedulable("m"), "", noon) }
	resource := corev1.Resource("pods")
	if got := write(t, apierrors.NewConflict(resource, "p", errors.New("changed")), set); len(got.failed) != 1 ||
		len(got.bodies) != 1 {
		t.Errorf("a conflict was reported %d times after %d writes", len(got.failed), len(got.bodies))
	}
	if got := write(t, apierrors.NewNotFound(resource, "p"), set); len(got.failed) != 0 {
		t.Errorf("a Pod that is gone was reported: %v", got.failed)
	}
}
