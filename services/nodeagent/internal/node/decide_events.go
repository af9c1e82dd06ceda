package node

import (
	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/conditions"
	"keelson.dev/kit/events"
)

// told are the conditions whose changes are reported by events, with the reasons of these. A new Node is not ready
// yet, which is no change.
var told = []struct {
	condition corev1.NodeConditionType
	is, isNot string
	ofNew     bool
}{
	{corev1.NodeMemoryPressure, "NodeHasInsufficientMemory", "NodeHasSufficientMemory", true},
	{corev1.NodeDiskPressure, "NodeHasDiskPressure", "NodeHasNoDiskPressure", true},
	{corev1.NodePIDPressure, "NodeHasInsufficientPID", "NodeHasSufficientPID", true},
	{corev1.NodeReady, "NodeReady", "NodeNotReady", false},
}

// changes returns the events about the changes between two statuses in the API, as the kubelet words them.
func changes(name string, before, after *corev1.NodeStatus) []events.Event {
	var out []events.Event
	for _, t := range told {
		was, now := conditions.Node.Find(before.Conditions, t.condition),
			conditions.Node.Find(after.Conditions, t.condition)
		if now == nil || was == nil && !t.ofNew || was != nil && was.Status == now.Status {
			continue
		}
		reason := t.isNot
		if now.Status == corev1.ConditionTrue {
			reason = t.is
		}
		out = append(out, statusIs(name, reason))
	}
	if was, now := before.NodeInfo.BootID, after.NodeInfo.BootID; was != "" && was != now {
		out = append(out, events.Warning("Rebooted", "Node %s has been rebooted, boot id: %s", name, now))
	}
	return out
}

// cordoned returns the events about whether Pods may be placed on the node.
func cordoned(name string, before, after *corev1.Node) []events.Event {
	switch {
	case before == nil || before.UID != after.UID || before.Spec.Unschedulable == after.Spec.Unschedulable:
		return nil
	case after.Spec.Unschedulable:
		return []events.Event{statusIs(name, "NodeNotSchedulable")}
	}
	return []events.Event{statusIs(name, "NodeSchedulable")}
}

func statusIs(name, reason string) events.Event {
	return events.Normal(reason, "Node %s status is now: %s", name, reason)
}
