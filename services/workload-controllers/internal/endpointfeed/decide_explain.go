package endpointfeed

import (
	"fmt"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/explain"
)

// listed says how many endpoints a slice lists.
func listed(slice *discoveryv1.EndpointSlice) string {
	ready := 0
	for i := range slice.Endpoints {
		if ptr.Deref(slice.Endpoints[i].Conditions.Ready, true) {
			ready++
		}
	}
	return fmt.Sprintf("lists %s, %d of them ready", explain.Count(len(slice.Endpoints), "endpoint"), ready)
}

// ownerless explains a slice whose owner is gone.
func ownerless(slice *discoveryv1.EndpointSlice, owner string) explain.Account {
	a := explain.Account{}
	a.Wait(explain.Wait{Reason: "OwnerGone", For: fmt.Sprintf("podgc's collector owners to delete it, as %s is gone; "+
		"it %s", owner, listed(slice)), Ends: "that has seen it, and no finalizer keeps it"})
	return a
}
