package wake

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"keelson.dev/kit/controller"
)

const (
	// quotaDelay is how long an object waits after a quota has changed: admission learns of it by a watch of its own.
	quotaDelay = 300 * time.Millisecond
	// quotaWoken is how many objects one change of a quota wakes up. Each that is not refused wakes up the next: what
	// a change costs depends on the room that there is, not on how many wait for it.
	quotaWoken = 8
)

// QuotaRule is what a controller declares that Build begins.
var QuotaRule = rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"resourcequotas"},
	Verbs: []string{"list", "watch"}}

// Build begins the controller of objects that make others: one whose creation a quota has refused is woken up when
// the quota grows, goes, or less of it is used, and not only at its next retry.
func Build(s *controller.Setup, concurrent int, next reconcile.Reconciler) *controller.Builder[reconcile.Request] {
	r := newRefused(next)
	return controller.Build(s, concurrent, reconcile.Reconciler(r)).Queue(r.start).
		Watch(source.Kind(s.Cache, &corev1.ResourceQuota{}, r.onQuota()))
}

// refused remembers the objects that wait for a quota, by namespace, with the turn in which each began to.
type refused struct {
	next reconcile.Reconciler

	mu    sync.Mutex // guards what follows
	queue Queue
	turn  int
	waits map[string]map[reconcile.Request]int
}

func newRefused(next reconcile.Reconciler) *refused {
	return &refused{next: next, waits: map[string]map[reconcile.Request]int{}}
}

func (r *refused) start(q Queue) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queue = q
}

// Reconcile implements reconcile.Reconciler.
func (r *refused) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	result, err := r.next.Reconcile(ctx, request)
	namespace := namespaceOf(request)
	r.mu.Lock()
	defer r.mu.Unlock()
	_, waited := r.waits[namespace][request]
	switch {
	case byQuota(err):
		if r.waits[namespace] == nil {
			r.waits[namespace] = map[reconcile.Request]int{}
		}
		r.turn++
		r.waits[namespace][request] = r.turn
	case waited:
		if delete(r.waits[namespace], request); len(r.waits[namespace]) == 0 {
			delete(r.waits, namespace)
		}
		if err == nil {
			r.wake(namespace, 1)
		}
	}
	return result, err
}

// namespaceOf is where an object makes others; a namespace is one itself.
func namespaceOf(request reconcile.Request) string { return cmp.Or(request.Namespace, request.Name) }

// byQuota reports whether admission has refused something that it may let in when a quota changes.
func byQuota(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), " quota: ")
}

// wake wakes up those that have waited for the longest.
func (r *refused) wake(namespace string, most int) {
	waits := r.waits[namespace]
	if len(waits) == 0 || r.queue == nil {
		return
	}
	requests := make([]reconcile.Request, 0, len(waits))
	for request := range waits {
		requests = append(requests, request)
	}
	slices.SortFunc(requests, func(a, b reconcile.Request) int { return waits[a] - waits[b] })
	for _, request := range requests[:min(most, len(requests))] {
		r.queue.AddAfter(request, quotaDelay)
	}
}

// onQuota wakes up those of a quota's namespace when more may be let in than before.
func (r *refused) onQuota() handler.TypedFuncs[*corev1.ResourceQuota, reconcile.Request] {
	wake := func(namespace string) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.wake(namespace, quotaWoken)
	}
	return handler.TypedFuncs[*corev1.ResourceQuota, reconcile.Request]{
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*corev1.ResourceQuota], _ Queue) {
			if eased(&e.ObjectOld.Status, &e.ObjectNew.Status) {
				wake(e.ObjectNew.Namespace)
			}
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*corev1.ResourceQuota], _ Queue) {
			wake(e.Object.Namespace)
		},
	}
}

// eased reports whether a quota may let in what it did not before: it bounds less, less of it is used, or what is
// used has become known.
func eased(before, after *corev1.ResourceQuotaStatus) bool {
	for name, hard := range before.Hard {
		if now, bounded := after.Hard[name]; !bounded || now.Cmp(hard) > 0 {
			return true
		}
	}
	for name, used := range after.Used {
		if last, known := before.Used[name]; !known || used.Cmp(last) < 0 {
			return true
		}
	}
	return false
}
