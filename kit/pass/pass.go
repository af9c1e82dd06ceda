// Package pass is what every controller does about one object: get, gate, observe, decide, apply; then wait for what
// the plan waits for. A controller's folder holds only the three steps that are its own.
package pass

import (
	"cmp"
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// recheck is when to look again at an object of which a newer state is on its way, should no event come.
const recheck = time.Second

// ErrStale is for apply to end a pass whose picture was wrong: the next one starts from a newer picture.
var ErrStale = errors.New("the cache was behind")

// Gate holds back an object with writes that the cache does not show yet.
type Gate interface {
	IsOpen(owner types.UID) bool
}

// Steps are a controller's own part: from the object to what was observed, to the plan, to its effects.
type Steps[O client.Object, In, Plan any] struct {
	// Reader is where the object is read from, New what it is read into.
	Reader client.Reader
	New    func() O
	// Gate is nil for a controller whose writes do no harm when they are repeated.
	Gate Gate
	// Observe gathers the input of a decision; false means that there is nothing to decide.
	Observe func(ctx context.Context, object O) (In, bool, error)
	Decide  func(In) Plan
	Apply   func(ctx context.Context, in In, plan Plan) error
	// After is how long the plan waits for time to pass; 0 means that it does not.
	After func(In, Plan) time.Duration
	// Recheck is when to look again at an object of which a newer state is on its way, should no event come; 0 means a
	// second.
	Recheck time.Duration
}

// Reconcile makes one pass. A conflict with a newer state is no error: the state is on its way here.
func (s *Steps[O, In, Plan]) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	object := s.New()
	if err := s.Reader.Get(ctx, request.NamespacedName, object); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if s.Gate != nil && !s.Gate.IsOpen(object.GetUID()) {
		return reconcile.Result{RequeueAfter: cmp.Or(s.Recheck, recheck)}, nil
	}
	in, needed, err := s.Observe(ctx, object)
	if err != nil || !needed {
		return reconcile.Result{}, err
	}
	plan := s.Decide(in)
	switch err := s.Apply(ctx, in, plan); {
	case apierrors.IsConflict(err) || errors.Is(err, ErrStale):
		return reconcile.Result{RequeueAfter: cmp.Or(s.Recheck, recheck)}, nil
	case err != nil:
		return reconcile.Result{}, err
	case s.After == nil:
		return reconcile.Result{}, nil
	default:
		return reconcile.Result{RequeueAfter: s.After(in, plan)}, nil
	}
}

// Until returns how long it is until a plan's time; the zero time means never, and one that has come means at once.
func Until(wake, now time.Time) time.Duration {
	if wake.IsZero() {
		return 0
	}
	return max(wake.Sub(now), time.Millisecond)
}
