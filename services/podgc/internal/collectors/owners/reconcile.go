package owners

import (
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// staleRetry is when an object is looked at again whose known version turned out to be old.
const staleRetry = 200 * time.Millisecond

// collector decides on one object at a time and carries the plan out.
type collector struct {
	lookup  *lookup
	writer  *writer
	revisit func(types.UID)

	mu    sync.RWMutex // guards graph
	graph *graph
}

// Reconcile implements reconcile.TypedReconciler.
func (c *collector) Reconcile(ctx context.Context, uid types.UID) (reconcile.Result, error) {
	in, known := c.snapshot(uid)
	if !known {
		return reconcile.Result{}, nil
	}
	plan := Decide(in)
	if len(plan.Lookup) > 0 {
		for _, ref := range plan.Lookup {
			state, err := c.lookup.find(ctx, in.Object, ref)
			if err != nil {
				return reconcile.Result{}, err
			}
			in.Owners[ref.UID] = state
		}
		plan = Decide(in)
	}
	for _, dependent := range plan.Revisit {
		c.revisit(dependent)
	}
	err := c.writer.apply(ctx, in.Object, plan)
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: staleRetry}, nil
	}
	return reconcile.Result{}, err
}

// snapshot reads what is known of an object. Owners that are in the graph need no lookup.
func (c *collector) snapshot(uid types.UID) (Input, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.graph.input(uid)
}

func stateOf(foreground bool) OwnerState {
	if foreground {
		return Waiting
	}
	return Present
}

func (c *collector) observe(o *Object) []types.UID {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.graph.observe(o)
}

func (c *collector) remove(uid types.UID) []types.UID {
	c.mu.Lock()
	defer c.mu.Unlock()
	if gone := c.graph.objects[uid]; gone != nil && len(c.graph.dependents[uid]) > 0 {
		c.lookup.saw(gone)
	}
	return c.graph.remove(uid)
}

// ignoreGone treats an object that is no longer there as done: its deletion was the goal.
func ignoreGone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// joinErrors keeps a conflict visible as such: it means that the whole pass is to be repeated.
func joinErrors(errs []error) error {
	for _, err := range errs {
		if apierrors.IsConflict(err) {
			return err
		}
	}
	return errors.Join(errs...)
}

// without returns the references but those to the owner.
func without(refs []metav1.OwnerReference, owner types.UID) []metav1.OwnerReference {
	kept := []metav1.OwnerReference{}
	for _, ref := range refs {
		if ref.UID != owner {
			kept = append(kept, ref)
		}
	}
	return kept
}
