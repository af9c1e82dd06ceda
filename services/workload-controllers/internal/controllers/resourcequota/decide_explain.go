package resourcequota

import (
	"fmt"
	"maps"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"keelson.dev/kit/explain"
)

// tell explains a decision.
func tell(in Input, plan Plan) explain.Account {
	a := explain.Account{Settled: "there is room for more of all that it bounds"}
	if !apiequality.Semantic.DeepEqual(in.Quota.Status, plan.Status) {
		a.Do(1, "writes what is used into the status")
	}
	for _, name := range slices.Sorted(maps.Keys(in.Quota.Spec.Hard)) {
		hard := in.Quota.Spec.Hard[name]
		used, counted := plan.Status.Used[name]
		switch {
		case !counted:
			a.Wait(explain.Wait{Reason: "NotCounted", For: fmt.Sprintf("somebody who counts %s, of which it allows %s",
				name, hard.String()),
				Ends: "what it bounds is a resource that is served, or is taken out of spec.hard"})
			continue
		case used.Cmp(hard) >= 0:
			a.Wait(explain.Wait{Reason: "Exhausted", For: fmt.Sprintf("less use of %s: %s of %s are used, and no more "+
				"are let in", name, used.String(), hard.String()),
				Ends: "some of it is given back, or spec.hard is raised"})
		}
		if there := in.Counted[name]; used.Cmp(there) > 0 {
			a.Wait(explain.Wait{Since: in.Raised, Reason: "InFlight", For: fmt.Sprintf("objects that may be on their "+
				"way: %s of %s are charged and %s are there", used.String(), name, there.String()),
				Ends: "they are there, or it is " + explain.At(in.Raised.Add(inFlight))})
		}
	}
	return a
}
