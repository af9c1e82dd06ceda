package endpointslice

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/endpointslice"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/explain"
	"keelson.dev/kit/podview"
	"keelson.dev/services/workload-controllers/internal/endpointfeed"
)

// account explains a decision: which of the selected Pods take requests, and what the others lack.
func account(in Input, plan endpointfeed.Plan) explain.Account {
	a := explain.Account{Whole: true}
	a.Do(len(plan.Create), "creates %s", explain.Count(len(plan.Create), "EndpointSlice"))
	a.Do(len(plan.Update), "changes %s", explain.Count(len(plan.Update), "EndpointSlice"))
	a.Do(len(plan.Delete), "deletes %s", explain.Count(len(plan.Delete), "EndpointSlice"))
	// The decision takes for true what all slices would say if they were recreated.
	anew := in
	anew.Slices = nil
	chosen := endpointsOf(Decide(anew).Create)
	ready := 0
	for _, endpoint := range chosen {
		if endpoint.ready {
			ready++
		}
	}
	a.Settled = fmt.Sprintf("%d of the %s that it selects take requests", ready, explain.Count(len(in.Pods), "Pod"))
	if len(in.Pods) == 0 {
		a.Wait(explain.Wait{Reason: "NoPods", For: "a Pod with the labels " +
			labels.Set(in.Service.Spec.Selector).String() + ": it selects none", Ends: "there is one in its namespace"})
	}
	for _, group := range lacking(in, chosen) {
		a.Wait(group)
	}
	return a
}

// chosenEndpoint is what the slices say of one Pod.
type chosenEndpoint struct {
	ready bool
	ports map[string]bool
}

func endpointsOf(all []*discoveryv1.EndpointSlice) map[types.UID]*chosenEndpoint {
	chosen := map[types.UID]*chosenEndpoint{}
	for _, slice := range all {
		for i := range slice.Endpoints {
			endpoint := &slice.Endpoints[i]
			of := chosen[endpoint.TargetRef.UID]
			if of == nil {
				of = &chosenEndpoint{ports: map[string]bool{}}
				chosen[endpoint.TargetRef.UID] = of
			}
			of.ready = of.ready || ptr.Deref(endpoint.Conditions.Ready, false)
			for _, port := range slice.Ports {
				of.ports[ptr.Deref(port.Name, "")] = true
			}
		}
	}
	return chosen
}

// lacking are the Pods that do not take requests, or not on all ports, by what they lack.
func lacking(in Input, chosen map[types.UID]*chosenEndpoint) []explain.Wait {
	groups := &groups{}
	for _, pod := range slices.SortedFunc(slices.Values(in.Pods), func(a, b *corev1.Pod) int {
		return strings.Compare(a.Name, b.Name)
	}) {
		endpoint := chosen[pod.UID]
		switch {
		case endpoint == nil:
			groups.add(absent(in, pod), pod.Name)
		case !endpoint.ready && podview.IsTerminating(pod):
			groups.add(lack{reason: "Terminating", since: pod.DeletionTimestamp.Time, what: "%s to go",
				ends: "it is gone"}, pod.Name)
		case !endpoint.ready:
			groups.add(lack{reason: "NotReady", since: readySince(pod), what: "%s to be ready",
				ends: "it passes its readiness probes and gates"}, pod.Name)
		}
		if endpoint == nil {
			continue
		}
		for i := range in.Service.Spec.Ports {
			port := &in.Service.Spec.Ports[i]
			if _, err := endpointslice.FindPort(pod, port); err != nil && !endpoint.ports[port.Name] {
				groups.add(lack{reason: "UnknownPort", what: fmt.Sprintf("a %s port named %q, where port %d leads to, "+
					"in %%s", port.Protocol, port.TargetPort.StrVal, port.Port),
					ends: "its containers name the port"}, pod.Name)
			}
		}
	}
	return groups.waits()
}

// absent is why the slices do not mention the Pod.
func absent(in Input, pod *corev1.Pod) lack {
	node := pod.Spec.NodeName
	switch {
	case podview.IsTerminal(pod):
		return lack{reason: "Ended", what: "%s to be replaced, having ended", ends: "its owner makes another"}
	case len(pod.Status.PodIPs) == 0 && node == "":
		return lack{reason: "NotScheduled", what: "%s to get a node", ends: "the scheduler finds one"}
	case len(pod.Status.PodIPs) == 0:
		return lack{reason: "NoAddress", what: "%s to get an address", ends: "its node has set it up"}
	case node != "" && in.Nodes[node] == nil:
		return lack{reason: "NoNode", what: fmt.Sprintf("the Node %s, which does not exist, for %%s", node),
			ends: "the Node is there, or the Pod is replaced"}
	}
	return lack{reason: "NoAddressOfFamily", what: fmt.Sprintf("%%s to get an address of %v",
		in.Service.Spec.IPFamilies), ends: "its node gives it one"}
}

func readySince(pod *corev1.Pod) time.Time {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// lack is what a Pod lacks. In what, %s stands for the number of Pods.
type lack struct {
	reason, what, ends string
	since              time.Time
}

// shownNames is how many Pods a sentence names before it only counts them.
const shownNames = 5

// groups are Pods by what they lack, in the order in which the lacks were found.
type groups struct {
	order []string
	lacks map[string]lack
	names map[string][]string
}

// add puts the Pod to those that lack the same, since the first of them does.
func (g *groups) add(l lack, name string) {
	if g.lacks == nil {
		g.lacks, g.names = map[string]lack{}, map[string][]string{}
	}
	known, found := g.lacks[l.what]
	if !found {
		g.order = append(g.order, l.what)
	}
	if !found || !l.since.IsZero() && l.since.Before(known.since) {
		g.lacks[l.what] = l
	}
	g.names[l.what] = append(g.names[l.what], name)
}

func (g *groups) waits() []explain.Wait {
	var all []explain.Wait
	for _, what := range g.order {
		l, names := g.lacks[what], g.names[what]
		shown := strings.Join(names[:min(len(names), shownNames)], ", ")
		if more := len(names) - shownNames; more > 0 {
			shown += fmt.Sprintf(" and %d more", more)
		}
		all = append(all, explain.Wait{Since: l.since, Reason: l.reason, Ends: l.ends,
			For: fmt.Sprintf(l.what, explain.Count(len(names), "Pod")) + ": " + shown})
	}
	return all
}

// leaves says why a Service's endpoints are not this controller's.
func leaves(service *corev1.Service) string {
	if service.Spec.Type == corev1.ServiceTypeExternalName {
		return "leaves it alone: it is another name for " + service.Spec.ExternalName + " and has no endpoints"
	}
	return "leaves it alone: it selects no Pods, so its endpoints are those of EndpointSlices that others write"
}

// leavesSlice says why an EndpointSlice is not this controller's.
func leavesSlice(slice *discoveryv1.EndpointSlice) string {
	by, service := slice.Labels[discoveryv1.LabelManagedBy], slice.Labels[discoveryv1.LabelServiceName]
	switch {
	case service == "":
		return "leaves it alone: it is of no Service, having no label " + discoveryv1.LabelServiceName
	case by == "":
		return fmt.Sprintf("leaves it to who made it, having no label %s; Service %s has its endpoints too",
			discoveryv1.LabelManagedBy, service)
	}
	return fmt.Sprintf("leaves it to %s, which its label %s names; Service %s has its endpoints too", by,
		discoveryv1.LabelManagedBy, service)
}
