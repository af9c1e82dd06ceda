package pods

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/explain"
	"keelson.dev/kit/podview"
	"keelson.dev/kit/seconds"
)

// words are the reasons as users read them.
var words = map[Reason]string{
	Orphaned:     "its node is gone",
	Unscheduled:  "it is being deleted and was never bound to a node",
	OutOfService: "it is being deleted and its node was declared to be switched off",
	Terminated:   "it has finished, and there are more finished Pods than may stay",
}

// account explains what a sweep does with one Pod.
func account(in Input, plan Plan, pod *corev1.Pod) explain.Account {
	for _, c := range plan.Collect {
		if c.Pod.UID == pod.UID {
			return explain.Account{Does: []string{"takes it away: " + words[c.Reason]}}
		}
	}
	node := pod.Spec.NodeName
	since, missed := plan.MissedSince[node]
	switch {
	case missed:
		return explain.Account{Waits: []explain.Wait{{Since: since, Reason: string(Orphaned),
			For:  fmt.Sprintf("node %s, which is gone, to stay away, and then takes the Pod away", node),
			Ends: fmt.Sprintf("it is %s, or the node is back", explain.At(since.Add(quarantine)))}}}
	case podview.IsTerminating(pod):
		grace := seconds.Of(ptr.Deref(pod.DeletionGracePeriodSeconds, 0))
		return explain.Account{Waits: []explain.Wait{{Since: pod.DeletionTimestamp.Add(-grace), Reason: "Terminating",
			For: fmt.Sprintf("node %s to end the Pod by %s", node, explain.At(pod.DeletionTimestamp.Time)),
			Ends: "the node says that it has, or the Node is deleted or gets the taint " +
				corev1.TaintNodeOutOfService}}}
	case podview.IsTerminal(pod) && in.Threshold > 0:
		return explain.Account{Settled: fmt.Sprintf("it has finished, and stays until it is the oldest of more than %d",
			in.Threshold)}
	}
	return explain.Account{Settled: "nothing takes it away"}
}
