package job

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"keelson.dev/services/workload-controllers/internal/podfeed"
	"keelson.dev/services/workload-controllers/internal/podset"
	"keelson.dev/services/workload-controllers/internal/wake"
)

// podPrefix marks a request for a Pod that has the finalizer but no Job to count it. No Job's name contains a slash.
const podPrefix = "pods/"

// recheck is when to look again at a Pod whose Job is not in the cache yet.
const recheck = time.Second

// reconciler makes passes over Jobs, and over Pods whose Job is gone.
type reconciler struct {
	jobs    reconcile.Reconciler
	orphans func(context.Context, types.NamespacedName) (reconcile.Result, error)
}

// Reconcile implements reconcile.Reconciler.
func (r reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if name, isPod := strings.CutPrefix(request.Name, podPrefix); isPod {
		return r.orphans(ctx, types.NamespacedName{Namespace: request.Namespace, Name: name})
	}
	return r.jobs.Reconcile(ctx, request)
}

// isOrphan reports whether a Pod has the finalizer although the cache has no Job to count it.
func (c *Controller) isOrphan(pod *corev1.Pod) bool {
	if !isTracked(pod) {
		return false
	}
	reference := metav1.GetControllerOfNoCopy(pod)
	if !wake.Names(reference, kind.GroupKind()) {
		return true
	}
	item, exists, err := c.jobs.GetByKey(toolscache.ObjectName{Namespace: pod.Namespace, Name: reference.Name}.String())
	if err != nil || !exists {
		return true
	}
	job, ok := item.(*batchv1.Job)
	return !ok || job.UID != reference.UID
}

// letGo removes the finalizer from a Pod whose Job is gone, once the apiserver confirms that.
func (c *Controller) letGo(ctx context.Context, name types.NamespacedName) (reconcile.Result, error) {
	pod := &corev1.Pod{}
	if err := c.client.Get(ctx, name, pod); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !c.isOrphan(pod) {
		return reconcile.Result{}, nil
	}
	owner := pod.UID
	if reference := metav1.GetControllerOfNoCopy(pod); wake.Names(reference, kind.GroupKind()) {
		owner = reference.UID
		live := &metav1.PartialObjectMetadata{}
		live.SetGroupVersionKind(kind)
		err := c.live.Get(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: reference.Name}, live)
		if err == nil && live.UID == owner {
			return reconcile.Result{RequeueAfter: recheck}, nil
		}
		if client.IgnoreNotFound(err) != nil {
			return reconcile.Result{}, fmt.Errorf("asking whether a Pod's Job is gone: %w", err)
		}
	}
	// Nothing waits to see this write.
	defer c.gate.Forget(owner)
	err := c.ops.PatchFinalizers(ctx, owner, []*corev1.Pod{pod}, untrackUnchanged)
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: recheck}, nil
	}
	return reconcile.Result{}, err
}

// bereaved returns the requests for the Pods of a deleted Job.
func (c *Controller) bereaved(job *batchv1.Job) []reconcile.Request {
	var requests []reconcile.Request
	own := podset.Owner(job.UID)
	for _, pod := range slices.Concat(c.pods.Pods(own, c.open), c.pods.Pods(own, c.done)) {
		requests = append(requests, wake.Request(pod.Namespace, podPrefix+pod.Name))
	}
	return requests
}

// sweep checks the existing Pods once at the start: their Jobs may have been deleted while no process watched. It
// implements controller-runtime's SyncingSource.
type sweep struct {
	controller *Controller
	feed       *podfeed.Feed
	cache      cache.Cache
	pods       toolscache.Indexer
	queue      wake.Queue
}

// Start stores the queue.
func (s *sweep) Start(_ context.Context, queue wake.Queue) error {
	s.queue = queue
	return nil
}

// WaitForSync requests a pass over each Pod whose Job may be gone. The pass finds a Job that the cache does not have
// yet.
func (s *sweep) WaitForSync(ctx context.Context) error {
	if err := s.feed.Connect(ctx, s.cache); err != nil {
		return err
	}
	s.look()
	return nil
}

func (s *sweep) look() {
	for _, item := range s.pods.List() {
		if pod, ok := item.(*corev1.Pod); ok && s.controller.isOrphan(pod) {
			s.queue.Add(wake.Request(pod.Namespace, podPrefix+pod.Name))
		}
	}
}
