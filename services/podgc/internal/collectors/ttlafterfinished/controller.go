// Package ttlafterfinished takes Jobs away that have been finished for as long as they asked for.
//
//	decide.go      whether a Job's time has come (pure); decide_explain.go: what that comes to, in words
//	reconcile.go   the second look, and the deletion
//	controller.go  what it reads and writes, and what wakes a Job up
package ttlafterfinished

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"keelson.dev/kit/controller"
	"keelson.dev/kit/explain"
)

// Name is the collector's.
const Name = "ttlafterfinished"

// workers is how many Jobs are taken away at once.
const workers = 5

// Register describes the collector.
func Register() controller.Registration {
	return controller.Registration{
		Name: Name, Explains: []string{"Job"},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"batch"}, Resources: []string{"jobs"}, Verbs: []string{"get", "list", "watch",
				"delete"}},
		},
		Setup: setup,
	}
}

func setup(s *controller.Setup) (controller.Runnable, error) {
	c := &collector{cached: s.Client, live: s.Live, writer: s.Client, now: time.Now}
	reconciler, err := controller.NewReconciler(s, workers, c.steps())
	if err != nil {
		return nil, err
	}
	s.Explain(explain.Explainer(c.steps(), account, standing))
	jobs := source.Kind(s.Cache, &batchv1.Job{}, &handler.TypedEnqueueRequestForObject[*batchv1.Job]{},
		predicate.NewTypedPredicateFuncs(NeedsWork))
	if err := reconciler.Watch(jobs); err != nil {
		return nil, fmt.Errorf("watching Jobs: %w", err)
	}
	return reconciler, nil
}
