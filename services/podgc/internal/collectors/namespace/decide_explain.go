package namespace

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/explain"
)

// account explains a decision about a namespace.
func account(in Input, plan Plan) explain.Account {
	a := explain.Account{Whole: true}
	since := in.Namespace.DeletionTimestamp.Time
	if plan.Finalize {
		a.Does = []string{"lets it go: it is empty"}
		return a
	}
	again := fmt.Sprintf("; the next look is within %s", plan.LookAgain.Round(100*time.Millisecond))
	if held := finalizers(in.Remaining); held != "" {
		a.Waits = append(a.Waits, explain.Wait{Since: since, Reason: "SomeFinalizersRemain",
			For:  "whoever is responsible for these finalizers: " + held,
			Ends: "they take them off" + again})
	}
	if len(in.Remaining) > 0 {
		a.Waits = append(a.Waits, explain.Wait{Since: since, Reason: "SomeResourcesRemain",
			For:  "what is in it to be gone: " + remaining(in.Remaining),
			Ends: "all of it is, Pods within their grace periods and before anything else" + again})
	}
	if len(in.Failures) > 0 {
		a.Waits = append(a.Waits, explain.Wait{Since: since, Reason: "ContentDeletionFailed",
			For:  "deletions to succeed that failed: " + strings.Join(in.Failures, "; "),
			Ends: "the apiserver accepts them" + again})
	}
	if len(in.Undiscovered) > 0 {
		a.Waits = append(a.Waits, explain.Wait{Since: since, Reason: "DiscoveryFailed",
			For:  "the resources of these groups to be readable: " + strings.Join(in.Undiscovered, ", "),
			Ends: "whoever serves them answers" + again})
	}
	return a
}

// standing explains a namespace that no pass has decided about.
func standing(ns *corev1.Namespace) explain.Account {
	var a explain.Account
	switch {
	case ns.DeletionTimestamp == nil:
		a.Settled = "it is not being deleted"
	case NeedsWork(ns):
		a.Does = []string{"begins to empty it"}
	case len(ns.Spec.Finalizers) > 0:
		a.Waits = []explain.Wait{{Since: ns.DeletionTimestamp.Time, Reason: "SpecFinalizers",
			For:  fmt.Sprintf("whoever is responsible for its spec.finalizers: %v", ns.Spec.Finalizers),
			Ends: "they take them off; it is empty as far as this collector is concerned"}}
	case len(ns.Finalizers) > 0:
		a.Waits = []explain.Wait{{Since: ns.DeletionTimestamp.Time, Reason: "Finalizers",
			For:  "whoever is responsible for its metadata.finalizers: " + strings.Join(ns.Finalizers, ", "),
			Ends: "they take them off; it is empty"}}
	default:
		a.Settled = "it is empty and about to be gone"
	}
	return a
}
