// Package resourcequota counts what is used of each ResourceQuota. Admission charges the quotas for what is made; the
// controller takes off what is gone, and corrects what was charged and never came.
//
//	decide.go           what a quota's status must be, from what was counted (pure)
//	decide_explain.go   what a decision came to, in words
//	ledger.go           what objects take of the quotas, kept by what changes
//	kinds.go            the watches of what some quota counts
//	reconcile.go        observe, apply
//	controller.go       what it reads and writes, and what wakes a quota up
package resourcequota

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"keelson.dev/kit/controller"
	"keelson.dev/kit/explain"
	"keelson.dev/kit/quota"
	"keelson.dev/services/workload-controllers/internal/gate"
	"keelson.dev/services/workload-controllers/internal/podfeed"
	"keelson.dev/services/workload-controllers/internal/podset"
	"keelson.dev/services/workload-controllers/internal/wake"
	"keelson.dev/services/workload-controllers/internal/write"
)

// Name is the controller's folder, half of its Lease's name, and its field manager.
const Name = "resourcequota"

// delay is how long a change waits for others of the same quota, so that a burst of them costs one write.
const delay = 300 * time.Millisecond

// Registration describes the controller. concurrent is how many quotas it works on at once.
func Registration(feed *podfeed.Feed, concurrent int) controller.Registration {
	return controller.Registration{
		Name:     Name,
		Explains: []string{"ResourceQuota"},
		Rules: []rbacv1.PolicyRule{
			// A quota may count objects of any kind, also of kinds that are added later.
			{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"list", "watch"}},
			{APIGroups: []string{""}, Resources: []string{"resourcequotas/status"}, Verbs: []string{"update"}},
		},
		Setup: func(s *controller.Setup) (controller.Runnable, error) { return setup(s, feed, concurrent) },
	}
}

func setup(s *controller.Setup, feed *podfeed.Feed, concurrent int) (controller.Runnable, error) {
	quotas, err := gate.StoreOf(s.Cache, &corev1.ResourceQuota{})
	if err != nil {
		return nil, err
	}
	own, pending := client.WithFieldOwner(s.Client, Name), gate.New()
	c := &Controller{
		client: own, writer: &write.Writer{Client: own, Kind: Name, Gate: pending, Store: quotas}, gate: pending,
		pods: feed.Index, ledger: NewLedger(), now: time.Now, filled: &times{at: map[types.UID]time.Time{}},
	}
	c.kinds = &Kinds{cache: s.Cache, mapper: s.Client.RESTMapper(), live: s.Live, changed: c.onObject, gone: c.onGone,
		watched: map[schema.GroupResource]*watched{}}
	built, err := controller.NewReconciler(s, concurrent, c.steps())
	if err != nil {
		return nil, err
	}
	s.Explain(explain.Explainer(c.steps(), tell, nil))
	if err := built.Watch(source.Func(func(_ context.Context, queue wake.Queue) error {
		c.queue = queue
		return nil
	})); err != nil {
		return nil, fmt.Errorf("watching what is counted: %w", err)
	}
	if err := built.Watch(source.Kind(s.Cache, &corev1.ResourceQuota{}, wake.Self(
		func(q *corev1.ResourceQuota) { c.ledger.Open(q, c.now()) }, c.forget))); err != nil {
		return nil, fmt.Errorf("watching ResourceQuotas: %w", err)
	}
	if err := built.Watch(&podfeed.Source{Feed: feed, Cache: s.Cache, Requests: c.onPod,
		Delay: func(podset.Change) time.Duration { return delay }}); err != nil {
		return nil, fmt.Errorf("watching Pods: %w", err)
	}
	return term{built, c.kinds}, nil
}

// term is the controller between winning its Lease and losing it. Nothing is counted after it.
type term struct {
	controller.Runnable
	kinds *Kinds
}

// Start runs the controller until ctx ends.
func (t term) Start(ctx context.Context) error {
	defer t.kinds.Keep(context.WithoutCancel(ctx), nil)
	return t.Runnable.Start(ctx)
}

// forget drops what is remembered about a quota that is gone, and watches what it alone counted no more.
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

// times are when something was last done for each object. It is safe for concurrent use.
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
