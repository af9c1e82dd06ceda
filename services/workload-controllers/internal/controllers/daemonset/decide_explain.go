package daemonset

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"

	"keelson.dev/kit/explain"
)

// account explains a decision.
func account(in Input, plan Plan) explain.Account {
	var a explain.Account
	set, status := in.DaemonSet, &plan.Status
	a.Do(len(plan.Adopt), "adopts %s", explain.Count(len(plan.Adopt), "Pod"))
	a.Do(len(plan.Release), "releases %s", explain.Count(len(plan.Release), "Pod"))
	a.Do(len(plan.Create), "creates a Pod on %s", explain.Count(len(plan.Create), "node"))
	for _, deletion := range plan.Delete {
		a.Do(1, "deletes Pod %s (%s)", deletion.Pod.Name, deletion.Reason)
	}
	a.Do(len(plan.Surplus), "deletes %s", explain.Count(len(plan.Surplus), "old revision"))
	if set.DeletionTimestamp != nil {
		a.Wait(explain.Wait{Since: set.DeletionTimestamp.Time, Reason: "Deleting", For: "its deletion to finish",
			Ends: "its finalizers are gone"})
		return a
	}
	if !plan.settled() {
		return a
	}
	desired := int(status.DesiredNumberScheduled)
	if lacking := desired - int(status.NumberAvailable); lacking > 0 {
		a.Wait(explain.Wait{Reason: "NotAvailable", For: fmt.Sprintf("an available Pod on %d of %s", lacking,
			explain.Count(desired, "node")), Ends: "the Pods there are ready: keel explain pod tells more of each"})
	}
	for _, failure := range failing(in) {
		a.Wait(failure)
	}
	if old := desired - int(status.UpdatedNumberScheduled); old > 0 {
		if set.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType {
			a.Wait(explain.Wait{Reason: "OnDelete", For: explain.Count(old, "Pod") + " of an earlier template to go",
				Ends: "somebody deletes them: the update strategy is OnDelete"})
		} else {
			a.Wait(explain.Wait{Reason: "RollingUpdate",
				For:  explain.Count(old, "node") + " to have a Pod of the current template alone",
				Ends: "the Pods that are being replaced are available, so that maxUnavailable or maxSurge leave room"})
		}
	}
	a.Settled = fmt.Sprintf("an available Pod of the current template on each of %s", explain.Count(desired, "node"))
	return a
}

// failing describes the waits for failed Pods that are replaced later.
func failing(in Input) []explain.Wait {
	var all []explain.Wait
	for _, place := range in.Places.list {
		f, known := in.Failures[place.node]
		due := f.Last.Add(replacing.Delay(f.known(in.DaemonSet.Generation, in.Now)))
		if known && due.After(in.Now) {
			all = append(all, explain.Wait{Since: f.Last, Reason: "FailedPod",
				For:  fmt.Sprintf("the time to replace what fails on node %s (%d times in a row)", place.node, f.Count),
				Ends: "it is " + explain.At(due)})
		}
	}
	return all
}
