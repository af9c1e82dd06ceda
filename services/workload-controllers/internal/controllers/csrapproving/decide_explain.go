package csrapproving

import (
	"fmt"
	"strings"

	"keelson.dev/kit/explain"
)

// account explains a decision.
func account(in Input, plan Plan) explain.Account {
	a := explain.Account{Settled: "it is decided about"}
	switch {
	case plan.Approve != nil:
		a.Do(1, "approves it")
	case len(plan.Lacks) > 0:
		a.Wait(explain.Wait{Since: in.Request.CreationTimestamp.Time, Reason: "Pending",
			For: "somebody to approve it: " + in.Request.Spec.Username + " may not create certificatesigningrequests/" +
				strings.Join(plan.Lacks, " or /"),
			Ends: "a role allows that, or somebody approves it"})
	case !decided(in.Request):
		a.Wait(explain.Wait{Since: in.Request.CreationTimestamp.Time, Reason: "Pending",
			For:  "somebody to approve it",
			Ends: fmt.Sprintf("somebody approves or denies it (kubectl certificate approve %s)", in.Request.Name)})
	}
	return a
}
