package statuswriter

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// api is the part of the API that a Writer uses; each call takes its answer from the front of answers.
type api struct {
	typedcorev1.PodInterface
	mu      sync.Mutex // guards all below
	answers []error
	updates []corev1.PodStatus
	deletes []metav1.DeleteOptions
	live    *corev1.Pod
	// takes is how long an update takes.
	takes time.Duration
}

func (a *api) Pods(string) typedcorev1.PodInterface { return a }

func (a *api) answer() error {
	if len(a.answers) == 0 {
		return nil
	}
	err := a.answers[0]
	a.answers = a.answers[1:]
	return err
}

func (a *api) UpdateStatus(_ context.Context, pod *corev1.Pod, _ metav1.UpdateOptions) (*corev1.Pod, error) {
	time.Sleep(a.takes)
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.answer(); err != nil {
		return nil, err
	}
	a.updates = append(a.updates, pod.Status)
	return pod.DeepCopy(), nil
}

// written returns the statuses that were written so far.
func (a *api) written() []corev1.PodStatus {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.updates)
}

func (a *api) Get(context.Context, string, metav1.GetOptions) (*corev1.Pod, error) {
	return a.live, nil
}

func (a *api) Delete(_ context.Context, _ string, o metav1.DeleteOptions) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.deletes = append(a.deletes, o)
	return a.answer()
}

type listener struct {
	mu   sync.Mutex // guards both
	seen []*corev1.Pod
	gone []types.UID
}

func withWriter(t *testing.T, test func(*Writer, *api, *listener)) {
	synctest.Test(t, func(t *testing.T) {
		a, l := &api{}, &listener{}
		w := New(a, zap.NewNop(), func(p *corev1.Pod) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.seen = append(l.seen, p)
		}, func(u types.UID) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.gone = append(l.gone, u)
		})
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { w.Run(ctx) })
		test(w, a, l)
		cancel()
		running.Wait()
	})
}

func pause(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// A Pod that starts within the settling time costs one write.
func TestCoalesces(t *testing.T) {
	withWriter(t, func(w *Writer, a *api, l *listener) {
		pod := web()
		w.Publish(pod, pending, false)
		pause(300 * time.Millisecond)
		w.Publish(pod, sandboxed, false)
		pause(200 * time.Millisecond)
		w.Publish(pod, running, false)
		pause(10 * time.Second)
		if len(a.written()) != 1 || a.written()[0].Phase != corev1.PodRunning {
			t.Errorf("%d writes: %+v; want one, that it runs", len(a.written()), a.written())
		}
		if len(l.seen) != 1 {
			t.Errorf("notified of %d versions, want that of the write", len(l.seen))
		}
	})
}

// A status that another will follow soon is held back.
func TestBrief(t *testing.T) {
	withWriter(t, func(w *Writer, a *api, _ *listener) {
		pod := web()
		w.Publish(pod, running, true)
		pause(settle / 2)
		if len(a.written()) != 0 {
			t.Error("a brief status was written at once")
		}
		pause(settle)
		if len(a.written()) != 1 {
			t.Error("a brief status that nothing followed was not written")
		}
	})
}

// A held-back status is not written at the due time of an earlier one that is written already.
func TestBriefAfterAnotherThatWasHeldBack(t *testing.T) {
	withWriter(t, func(w *Writer, a *api, _ *listener) {
		pod := web()
		w.Publish(pod, pending, false) // asks for a write at 1 s
		pause(200 * time.Millisecond)
		w.Publish(pod, running, false) // is written at once
		pause(600 * time.Millisecond)
		w.Publish(pod, exited, true) // at 800 ms, for 1.8 s
		pause(400 * time.Millisecond)
		if len(a.written()) != 1 {
			t.Errorf("%d writes by 1.2 s, want only that of the running container", len(a.written()))
		}
		w.Publish(pod, exited, true) // publishing the same again delays nothing
		pause(500 * time.Millisecond)
		if len(a.written()) != 1 {
			t.Errorf("%d writes by 1.7 s, want one", len(a.written()))
		}
		pause(200 * time.Millisecond)
		if len(a.written()) != 2 {
			t.Errorf("%d writes by 1.9 s, want two", len(a.written()))
		}
	})
}

// Statuses that keep changing are not held back forever.
func TestSettlesWhileItChanges(t *testing.T) {
	withWriter(t, func(w *Writer, a *api, _ *listener) {
		pod := web()
		for i := range 4 {
			s := pending
			s.Message = string(rune('a' + i))
			w.Publish(pod, s, true)
			pause(400 * time.Millisecond)
		}
		if len(a.written()) != 1 || a.written()[0].Message != "c" {
			t.Errorf("written by 1.6 s: %+v; want the one that stood at 1 s", a.written())
		}
	})
}

func TestWritesNothingTwice(t *testing.T) {
	withWriter(t, func(w *Writer, a *api, _ *listener) {
		pod := web()
		pod.Status = running
		w.Publish(pod, running, false)
		pause(10 * time.Second)
		if len(a.written()) != 0 {
			t.Errorf("%d writes of what the API has", len(a.written()))
		}
	})
}

// A status that is being written is not sent once more: the second write would be of an outdated version.
func TestWritesNothingTwiceAtOnce(t *testing.T) {
	for name, row := range map[string]struct {
		edit func(*corev1.Pod, *corev1.PodStatus)
		want int
	}{
		"the same":              {func(*corev1.Pod, *corev1.PodStatus) {}, 1},
		"another status":        {func(_ *corev1.Pod, s *corev1.PodStatus) { s.Phase = corev1.PodFailed }, 2},
		"of a version after it": {func(p *corev1.Pod, _ *corev1.PodStatus) { p.ResourceVersion = "2" }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			withWriter(t, func(w *Writer, a *api, _ *listener) {
				a.takes = time.Second
				pod := web()
				w.Publish(pod, running, false)
				pause(a.takes / 2)
				pod, status := pod.DeepCopy(), running
				row.edit(pod, &status)
				w.Publish(pod, status, false)
				pause(10 * time.Second)
				if len(a.written()) != row.want {
					t.Errorf("%d writes, want %d", len(a.written()), row.want)
				}
			})
		})
	}
}

// A held-back status is written at once when a change makes it urgent.
func TestHeldBackNoLonger(t *testing.T) {
	withWriter(t, func(w *Writer, a *api, _ *listener) {
		pod := web()
		w.Publish(pod, running, true)
		pause(settle / 4)
		w.Publish(pod, running, false)
		pause(settle / 4)
		if len(a.written()) != 1 {
			t.Errorf("%d writes, want 1", len(a.written()))
		}
	})
}

func TestConflictFetchesTheNewer(t *testing.T) {
	withWriter(t, func(w *Writer, a *api, l *listener) {
		pod := web()
		a.answers = []error{apierrors.NewConflict(corev1.Resource("pods"), "web", errors.New("modified"))}
		a.live = pod.DeepCopy()
		w.Publish(pod, running, false)
		pause(time.Second)
		if len(a.written()) != 0 || len(l.seen) != 1 || l.seen[0] != a.live {
			t.Errorf("%d writes, notified of %v; want the newer version notified and nothing written over it",
				len(a.written()),
				l.seen)
		}
	})
}

// SAF-139 SAF-150: a same-named successor is a different Pod.
func TestSuccessorIsAnotherPod(t *testing.T) {
	withWriter(t, func(w *Writer, a *api, l *listener) {
		pod := web()
		a.answers = []error{apierrors.NewConflict(corev1.Resource("pods"), "web", errors.New("uid"))}
		a.live = pod.DeepCopy()
		a.live.UID = "u2"
		w.Publish(pod, running, false)
		pause(time.Second)
		if len(l.seen) != 0 || len(l.gone) != 1 || l.gone[0] != "u1" {
			t.Errorf("seen %v, gone %v; want only u1 gone", l.seen, l.gone)
		}
	})
}

func TestTriesAgain(t *testing.T) {
	withWriter(t, func(w *Writer, a *api, _ *listener) {
		pod := web()
		a.answers = []error{errors.New("no answer"), errors.New("no answer")}
		w.Publish(pod, running, false)
		pause(time.Minute)
		if len(a.written()) != 1 {
			t.Errorf("%d writes after two failures, want 1", len(a.written()))
		}
	})
}

// SAF-139 POD-167: the deletion is immediate and names the UID.
func TestDelete(t *testing.T) {
	withWriter(t, func(w *Writer, a *api, _ *listener) {
		pod := web()
		if err := w.Delete(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		o := a.deletes[0]
		if o.GracePeriodSeconds == nil || *o.GracePeriodSeconds != 0 || o.Preconditions == nil ||
			*o.Preconditions.UID != pod.UID {
			t.Errorf("deleted with %+v", o)
		}
		a.answers = []error{apierrors.NewNotFound(corev1.Resource("pods"), "web")}
		if err := w.Delete(t.Context(), pod); err != nil {
			t.Errorf("deleting what is gone: %v", err)
		}
		a.answers = []error{errors.New("no answer")}
		if err := w.Delete(t.Context(), pod); err == nil {
			t.Error("a failed deletion counts as done")
		}
	})
}
