package protection

import (
	"strings"

	"keelson.dev/kit/explain"
)

// account explains a decision.
func account(in Input, plan Plan) explain.Account {
	switch {
	case plan.Change && isGoing(in.Object):
		return explain.Account{Does: []string{"takes off the finalizer " + in.Finalizer + ": nobody uses it"}}
	case plan.Change:
		return explain.Account{Does: []string{"gives it the finalizer " + in.Finalizer}}
	}
	return explain.Account{Waits: []explain.Wait{{Since: in.Object.GetDeletionTimestamp().Time, Reason: "InUse",
		For: in.User + " to let go of it, which protects it from deletion", Ends: "that has ended or is gone"}}}
}

// leaves says why there is nothing to decide about an object.
func leaves(o object) string {
	switch left := strings.Join(o.Finalizers, ", "); {
	case !isGoing(o):
		return "waits for nothing: it is protected from deletion while it is used"
	case left != "":
		return "has nothing to decide: nobody uses it, and it waits for others who take off its finalizers: " + left
	}
	return "has nothing to decide: nobody uses it, and it is about to be gone"
}
