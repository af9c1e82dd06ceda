// Package ttlafterfinished takes Jobs away that have been finished for as long as they asked for.
//
//	decide.go      whether a Job's time has come (pure); decide_explain.go: what that comes to, in words
//	reconcile.go   the second look, and the deletion
//	controller.go  what it reads and writes, and what wakes a Job up
package ttlafterfinished

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"keelson.dev/kit/controller"
	"keelson.dev/kit/explain"
)

// Name is the collector's.
const Name = "ttlafterfinished"

// workers is how many Jobs are taken away at once.
const workers = 5

// Registration describes the collector.
func Registration() controller.Registration {
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
	return controller.Build(s, workers, c.steps()).
		Explain(explain.Explainer(c.steps(), account, standing)).
		Watch(controller.Objects(s.Cache, &batchv1.Job{}, predicate.NewTypedPredicateFuncs(NeedsWork))).
		Runnable()
}
