// Package statuswriter writes Pod statuses to the API, and removes Pods there that have ended.
package statuswriter

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/failpoint"
)

// writers is how many statuses are written concurrently.
const writers = 4

// Writer is the only writer of Pod statuses to the API, and deletes Pods there. It writes a status only if it
// differs from the API's, holds unimportant changes back for a moment (Delay), and replaces a waiting status by the
// newest one. Writes carry the version that the status was computed from: on a conflict the newer object goes to
// seen, and the status that is computed from it is written.
type Writer struct {
	client typedcorev1.PodsGetter
	log    *zap.Logger
	seen   func(*corev1.Pod)
	gone   func(types.UID)
	queue  workqueue.TypedRateLimitingInterface[types.UID]

	mu      sync.Mutex // guards pending
	pending map[types.UID]*entry
}

type entry struct {
	pod    *corev1.Pod
	status corev1.PodStatus
	// due is when the status is to be written; a status that replaces a waiting one inherits it, so that none waits
	// forever.
	due time.Time
	// taken means that the entry is being written to the API.
	taken bool
}

// says reports whether the entry, which may be being written, holds this status of this version of the Pod.
func (e *entry) says(pod *corev1.Pod, status *corev1.PodStatus) bool {
	return e.pod.ResourceVersion == pod.ResourceVersion && apiequality.Semantic.DeepEqual(&e.status, status)
}

// New returns a Writer. seen gets every version of a Pod that the writer learns of, including its own writes;
// gone gets the UIDs for which the API turns out to have no object. Both must not block.
func New(client typedcorev1.PodsGetter, log *zap.Logger, seen func(*corev1.Pod), gone func(types.UID)) *Writer {
	return &Writer{
		client: client, log: log, seen: seen, gone: gone, pending: map[types.UID]*entry{},
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[types.UID]()),
	}
}

// Run writes until ctx ends.
func (w *Writer) Run(ctx context.Context) {
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for w.next(ctx) {
			}
		})
	}
	<-ctx.Done()
	w.queue.ShutDown()
	all.Wait()
}

// Len returns how many statuses wait.
func (w *Writer) Len() int { return w.queue.Len() }

// Publish sets the status that the Pod is to have. pod is the version that it was computed from; brief means that
// another status will follow soon, so that this one may be held back even if it is urgent.
func (w *Writer) Publish(pod *corev1.Pod, status corev1.PodStatus, brief bool) {
	delay, differs := Delay(&pod.Status, &status)
	if brief {
		delay = settle
	}
	w.mu.Lock()
	if !differs {
		delete(w.pending, pod.UID)
		w.mu.Unlock()
		return
	}
	due, before := time.Now().Add(delay), w.pending[pod.UID]
	if before != nil && !before.taken && before.due.Before(due) {
		due = before.due
	}
	if before != nil && before.says(pod, &status) {
		before.due = due
	} else {
		w.pending[pod.UID] = &entry{pod: pod, status: status, due: due}
	}
	w.mu.Unlock()
	w.queue.AddAfter(pod.UID, delay)
}

// Forget drops what is pending for the Pod.
func (w *Writer) Forget(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.pending, uid)
}

func (w *Writer) next(ctx context.Context) bool {
	uid, stop := w.queue.Get()
	if stop {
		return false
	}
	defer w.queue.Done(uid)
	e, early := w.take(uid)
	if e == nil {
		w.queue.Forget(uid)
		if early > 0 {
			w.queue.AddAfter(uid, early)
		}
		return true
	}
	if err := w.write(ctx, e); err != nil {
		w.putBack(e)
		if ctx.Err() == nil {
			w.log.Warn("writing a Pod's status failed, trying again", zap.String("namespace", e.pod.Namespace),
				zap.String("pod", e.pod.Name), zap.Error(err))
			w.queue.AddRateLimited(uid)
		}
		return true
	}
	w.queue.Forget(uid)
	return true
}

// take returns the status if it is due. The queue may yield a Pod too early: at the time of an earlier status,
// which was written meanwhile. early is then the time left.
func (w *Writer) take(uid types.UID) (due *entry, early time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.pending[uid]
	if e == nil {
		return nil, 0
	}
	if left := time.Until(e.due); left > 0 {
		return nil, left
	}
	e.taken = true
	return e, 0
}

// write writes one status and removes it from pending, unless a newer one has replaced it.
func (w *Writer) write(ctx context.Context, e *entry) error {
	if err := failpoint.Inject("nodeagent/status.write.before"); err != nil {
		return err
	}
	update := *e.pod // only the status differs; the rest is shared and must not change
	update.Status = e.status
	written, err := w.client.Pods(e.pod.Namespace).UpdateStatus(ctx, &update, metav1.UpdateOptions{})
	switch {
	case apierrors.IsNotFound(err):
		w.done(e)
		w.gone(e.pod.UID)
		return nil
	case apierrors.IsConflict(err):
		return w.refresh(ctx, e)
	case err != nil:
		return fmt.Errorf("updating the status: %w", err)
	}
	w.done(e)
	w.seen(written)
	return failpoint.Inject("nodeagent/status.write.after")
}

// refresh gets the version that another client has written; a status computed from it will follow.
func (w *Writer) refresh(ctx context.Context, e *entry) error {
	live, err := w.client.Pods(e.pod.Namespace).Get(ctx, e.pod.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) || err == nil && live.UID != e.pod.UID:
		w.done(e)
		w.gone(e.pod.UID)
		return nil
	case err != nil:
		return fmt.Errorf("reading the Pod: %w", err)
	}
	w.done(e)
	w.seen(live)
	return nil
}

// putBack notes that the entry was not written.
func (w *Writer) putBack(e *entry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e.taken = false
}

func (w *Writer) done(e *entry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pending[e.pod.UID] == e {
		delete(w.pending, e.pod.UID)
	}
}

// Delete removes the Pod's object for good; its UID is a precondition, so a successor of the same name is safe. If
// it returns no error, the API has no object of the UID that is not already being deleted.
func (w *Writer) Delete(ctx context.Context, pod *corev1.Pod) error {
	return failpoint.Around("nodeagent/pod.delete", func() error {
		err := w.client.Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
			GracePeriodSeconds: ptr.To(int64(0)), Preconditions: &metav1.Preconditions{UID: &pod.UID}})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("deleting the Pod: %w", err)
		}
		return nil
	})
}
