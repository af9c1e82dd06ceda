package endpoint

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"keelson.dev/kit/explain"
)

// account explains a decision: how many of the selected Pods the Endpoints list, and why others are missing.
func account(in Input, plan Plan) explain.Account {
	a := explain.Account{Whole: true}
	if plan.Create != nil {
		a.Do(1, "creates the Endpoints")
	}
	if plan.Update != nil {
		a.Do(1, "changes the Endpoints")
	}
	all := subsets(in.Service, in.Pods)
	_, over := truncate(all)
	ready, rest, pods := 0, 0, map[string]bool{}
	for i := range all {
		ready += len(all[i].Addresses)
		rest += len(all[i].NotReadyAddresses)
		for _, addresses := range [][]corev1.EndpointAddress{all[i].Addresses, all[i].NotReadyAddresses} {
			for j := range addresses {
				if addresses[j].TargetRef != nil {
					pods[addresses[j].TargetRef.Name] = true
				}
			}
		}
	}
	a.Settled = fmt.Sprintf("they list %d of the %s that the Service selects", len(pods),
		explain.Count(len(in.Pods), "Pod"))
	if len(in.Pods) == 0 {
		a.Wait(explain.Wait{Reason: "NoPods", For: "a Pod with the labels " +
			labels.Set(in.Service.Spec.Selector).String() + ": the Service selects none",
			Ends: "there is one in its namespace"})
	}
	if rest > 0 {
		a.Wait(explain.Wait{Reason: "NotReady", For: explain.Count(rest, "address") + " of Pods to be ready",
			Ends: "the Pods pass their readiness probes and gates, or are gone"})
	}
	if lacking := len(in.Pods) - len(pods); lacking > 0 {
		a.Wait(explain.Wait{Reason: "NotListed", For: explain.Count(lacking, "Pod") + " that cannot be listed: " +
			"ended, or without an address of the Service's family, or without its port",
			Ends: "their nodes have set them up, or others take their place"})
	}
	if over {
		a.Wait(explain.Wait{Reason: "OverCapacity", For: fmt.Sprintf("room for all addresses: there are %d, and "+
			"Endpoints have at most %d", ready+rest, maxAddresses), Ends: "the Service selects fewer Pods"})
	}
	return a
}

// leaves returns why this controller does not manage a Service's Endpoints, or "".
func leaves(service *corev1.Service) string {
	if service.Spec.Type == corev1.ServiceTypeExternalName {
		return "leaves them alone: the Service is another name for " + service.Spec.ExternalName
	}
	return "leaves them alone: the Service selects no Pods, so they are a user's own"
}
