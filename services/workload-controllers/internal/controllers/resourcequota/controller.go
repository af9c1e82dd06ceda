// Package resourcequota counts the usage of each ResourceQuota. Admission charges the quotas for new objects; the
// controller releases what deleted objects used, and corrects charges for objects that were never created.
//
//	decide.go           what a quota's status must be, given the counted usage (pure)
//	decide_explain.go   the explanation of a decision
//	ledger.go           the usage of the quotas, updated by each change of an object
//	kinds.go            the watches of the kinds that quotas count
//	reconcile.go        observe, apply
//	controller.go       what it reads and writes, and what wakes a quota up
package resourcequota

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"keelson.dev/kit/controller"
	"keelson.dev/kit/explain"
	"keelson.dev/kit/quota"
	"keelson.dev/services/workload-controllers/internal/podfeed"
	"keelson.dev/services/workload-controllers/internal/podset"
	"keelson.dev/services/workload-controllers/internal/wake"
	"keelson.dev/services/workload-controllers/internal/write"
)

// Name is the controller's folder, half of its Lease's name, and its field manager.
const Name = "resourcequota"

// delay is how long a change waits for other changes of the same quota, so that a burst costs one write.
const delay = 300 * time.Millisecond

// Registration describes the controller. concurrent is how many quotas it works on at once.
func Registration(feed *podfeed.Feed, concurrent int) controller.Registration {
	return controller.Registration{
		Name:     Name,
		Explains: []string{"ResourceQuota"},
		Rules: []rbacv1.PolicyRule{
			// A quota may count objects of any kind, including kinds that are added later.
			{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"list", "watch"}},
			{APIGroups: []string{""}, Resources: []string{"resourcequotas/status"}, Verbs: []string{"update"}},
		},
		Setup: func(s *controller.Setup) (controller.Runnable, error) { return setup(s, feed, concurrent) },
	}
}

func setup(s *controller.Setup, feed *podfeed.Feed, concurrent int) (controller.Runnable, error) {
	own := write.By(s)
	c := &Controller{
		client: own.Client, writer: own.Gated(Name, &corev1.ResourceQuota{}), gate: own.Gate,
		pods: feed.Index, ledger: NewLedger(), now: time.Now, filled: &times{at: map[types.UID]time.Time{}},
	}
	c.kinds = &Kinds{cache: s.Cache, mapper: s.Client.RESTMapper(), live: s.Live, changed: c.onObject, gone: c.onGone,
		watched: map[schema.GroupResource]*watched{}}
	return controller.Build(s, concurrent, c.steps()).
		Explain(explain.Explainer(c.steps(), tell, nil)).
		Queue(func(q wake.Queue) { c.queue = q }).
		Watch(source.Kind(s.Cache, &corev1.ResourceQuota{}, wake.Self(c.open, c.forget)),
			&podfeed.Source{Feed: feed, Cache: s.Cache, Requests: c.onPod,
				Delay: func(podset.Change) time.Duration { return delay }}).
		// After the term nothing is watched.
		Last(func() { c.kinds.Keep(context.Background(), nil) }).
		Runnable()
}

func (c *Controller) open(q *corev1.ResourceQuota) { c.ledger.Open(q, c.now()) }

// forget drops what is remembered about a deleted quota, and stops the watches that only it needed.
func (c *Controller) forget(q *corev1.ResourceQuota) {
	c.ledger.Close(q)
	c.gate.Forget(q.UID)
	c.filled.forget(q.UID)
	needed := map[schema.GroupResource]bool{}
	for _, spec := range c.ledger.Specs() {
		for name := range spec.Hard {
			if kind, ok := quota.Kind(name); ok {
				needed[kind] = true
			}
		}
	}
	c.kinds.Keep(context.Background(), needed)
}

// times records when something was last done for each object. It is safe for concurrent use.
type times struct {
	mu sync.Mutex // guards at
	at map[types.UID]time.Time
}

func (t *times) of(uid types.UID) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.at[uid]
}

func (t *times) set(uid types.UID, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.at[uid] = at
}

func (t *times) forget(uid types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.at, uid)
}
