package resourcequota

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"keelson.dev/kit/pass"
	"keelson.dev/kit/quota"
	"keelson.dev/services/workload-controllers/internal/gate"
	"keelson.dev/services/workload-controllers/internal/podset"
	"keelson.dev/services/workload-controllers/internal/wake"
	"keelson.dev/services/workload-controllers/internal/write"
)

// retry is when to look again at a quota that admission was charging at the same time.
const retry = 100 * time.Millisecond

// Controller counts the usage of the quotas.
type Controller struct {
	client client.Client // reads from the cache
	writer *write.Writer
	gate   *gate.Gate
	pods   *podset.Index
	kinds  *Kinds
	ledger *Ledger
	now    func() time.Time
	queue  wake.Queue
	// filled is when all objects of a quota's namespace were last recounted.
	filled *times
}

// steps are what a pass over a quota consists of. The gate keeps a pass from subtracting the same release twice.
func (c *Controller) steps() *pass.Steps[*corev1.ResourceQuota, Input, Plan] {
	return &pass.Steps[*corev1.ResourceQuota, Input, Plan]{
		Reader: c.client, New: func() *corev1.ResourceQuota { return &corev1.ResourceQuota{} }, Gate: c.gate,
		Observe: c.observe, Decide: Decide, Apply: c.apply, Recheck: retry,
		After: func(in Input, plan Plan) time.Duration { return pass.Until(plan.Wake, in.Now) },
	}
}

// observe makes sure that all objects that the quota counts have been seen, and reads their usage.
func (c *Controller) observe(ctx context.Context, q *corev1.ResourceQuota) (Input, bool, error) {
	if q.DeletionTimestamp != nil {
		return Input{}, false, nil
	}
	var names []corev1.ResourceName
	for name := range q.Spec.Hard {
		kind, known := quota.Kind(name)
		if !known {
			continue
		}
		if kind != quota.Pods {
			served, err := c.kinds.Ensure(ctx, kind)
			if err != nil {
				return Input{}, false, err
			}
			if !served {
				continue
			}
		}
		names = append(names, name)
	}
	now := c.now()
	if !now.Before(c.filled.of(q.UID).Add(resync)) {
		if err := c.fill(q.Namespace, now); err != nil {
			return Input{}, false, err
		}
		c.filled.set(q.UID, now)
	}
	in, known := c.ledger.Read(q, now)
	for _, name := range names {
		if known {
			add(in.Counted, corev1.ResourceList{name: *resource.NewQuantity(0, resource.DecimalSI)})
		}
	}
	return in, known, nil
}

// fill recounts all objects of a namespace.
func (c *Controller) fill(namespace string, now time.Time) error {
	var err error
	c.ledger.Refill(namespace, func(visit func(types.UID, item)) {
		for _, pod := range c.pods.Members(podset.Namespace(namespace)) {
			visit(pod.UID, ofPod(pod, now))
		}
		err = c.kinds.Visit(namespace, func(kind schema.GroupResource, o client.Object) {
			visit(o.GetUID(), of(kind, o))
		})
	})
	return err
}

// apply carries out the plan.
func (c *Controller) apply(ctx context.Context, in Input, plan Plan) error {
	_, err := write.Status(ctx, c.writer, in.Quota, plan.Status,
		func(q *corev1.ResourceQuota) *corev1.ResourceQuotaStatus { return &q.Status })
	if err == nil || !apierrors.IsConflict(err) {
		// After an error the write may still have reached the server: the release must not be subtracted twice.
		c.ledger.Settle(in.Quota, in.Released)
	}
	return err
}

// onPod records a changed Pod and wakes up the quotas that count it.
func (c *Controller) onPod(pod *corev1.Pod, _ podset.Change) []reconcile.Request {
	if !c.ledger.Keeps(pod.Namespace) {
		return nil
	}
	if c.pods.Get(pod.UID) == nil {
		return requests(pod.Namespace, c.ledger.Remove(pod.Namespace, pod.UID))
	}
	return requests(pod.Namespace, c.ledger.Put(pod.Namespace, pod.UID, ofPod(pod, c.now())))
}

func (c *Controller) onObject(kind schema.GroupResource, o client.Object) {
	if c.ledger.Keeps(o.GetNamespace()) {
		c.wake(o.GetNamespace(), c.ledger.Put(o.GetNamespace(), o.GetUID(), of(kind, o)))
	}
}

func (c *Controller) onGone(_ schema.GroupResource, o client.Object) {
	c.wake(o.GetNamespace(), c.ledger.Remove(o.GetNamespace(), o.GetUID()))
}

func (c *Controller) wake(namespace string, names []string) {
	for _, request := range requests(namespace, names) {
		c.queue.AddAfter(request, delay)
	}
}

func requests(namespace string, names []string) []reconcile.Request {
	var all []reconcile.Request
	for _, name := range names {
		all = append(all, wake.Request(namespace, name))
	}
	return all
}

// ofPod returns what quotas see of a Pod as the cache keeps it (podfeed.Trim).
func ofPod(pod *corev1.Pod, now time.Time) item {
	i := item{scopes: quota.PodScopes(pod)}
	var requests, limits corev1.ResourceList
	if asked := pod.Spec.Resources; asked != nil {
		requests, limits = asked.Requests, asked.Limits
	}
	ended := quota.HasEnded(pod, now)
	i.usage = quota.Pod(requests, limits, ended)
	if at, ends := quota.Overdue(pod); ends && !ended {
		i.overdue = at
	}
	return i
}

func of(kind schema.GroupResource, o client.Object) item {
	switch o := o.(type) {
	case *corev1.Service:
		return item{usage: quota.Service(o)}
	case *corev1.PersistentVolumeClaim:
		return item{usage: quota.Claim(o), scopes: quota.ClaimScopes(o)}
	case *resourcev1.ResourceClaim:
		return item{usage: quota.ResourceClaim(o)}
	}
	return item{usage: quota.Object(kind)}
}
