package endpointslicemirroring

import (
	"fmt"

	"keelson.dev/kit/explain"
	"keelson.dev/services/workload-controllers/internal/endpointfeed"
)

// account explains a decision.
func account(in Input, plan endpointfeed.Plan) explain.Account {
	a := explain.Account{Whole: true}
	a.Do(len(plan.Create), "creates %s", explain.Count(len(plan.Create), "EndpointSlice"))
	a.Do(len(plan.Update), "changes %s", explain.Count(len(plan.Update), "EndpointSlice"))
	a.Do(len(plan.Delete), "deletes %s", explain.Count(len(plan.Delete), "EndpointSlice"))
	why := spared(in.Endpoints, in.Service)
	a.Settled = "they are not mirrored, since " + why
	switch why {
	case noService:
		a.Wait(explain.Wait{Since: in.Endpoints.CreationTimestamp.Time, Reason: "NoService",
			For: "a Service to mirror them for: " + noService, Ends: "there is one, without a selector"})
	case "":
		said, mirrored := 0, 0
		for i := range in.Endpoints.Subsets {
			said += len(in.Endpoints.Subsets[i].Addresses) + len(in.Endpoints.Subsets[i].NotReadyAddresses)
		}
		wanted := slicesOf(&in)
		for _, slice := range wanted {
			mirrored += len(slice.Endpoints)
		}
		a.Settled = fmt.Sprintf("%s mirror %s", explain.Count(len(wanted), "EndpointSlice"),
			explain.Count(mirrored, "endpoint"))
		if left := said - mirrored; left > 0 {
			a.Wait(explain.Wait{Reason: "NotMirrored", For: fmt.Sprintf("%d of the %d addresses to be mirrored: at "+
				"most %d of a subset are, and only those that are IP addresses", left, said, in.MaxEndpoints),
				Ends: "they are fewer, or put right"})
		}
	}
	return a
}
