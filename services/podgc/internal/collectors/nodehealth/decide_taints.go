package nodehealth

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/kit/conditions"
)

// pressures are the conditions that keep new Pods away while they are true, in the order of their taints.
var pressures = []struct {
	condition corev1.NodeConditionType
	taint     string
}{
	{corev1.NodeMemoryPressure, corev1.TaintNodeMemoryPressure},
	{corev1.NodeDiskPressure, corev1.TaintNodeDiskPressure},
	{corev1.NodePIDPressure, corev1.TaintNodePIDPressure},
	{corev1.NodeNetworkUnavailable, corev1.TaintNodeNetworkUnavailable},
}

// readyTaint is the taint for what the Node's condition Ready says; "" for a Node that is ready.
func readyTaint(node *corev1.Node) string {
	ready := conditions.Node.Find(node.Status.Conditions, corev1.NodeReady)
	switch {
	case ready != nil && ready.Status == corev1.ConditionTrue:
		return ""
	case ready != nil && ready.Status == corev1.ConditionUnknown:
		return corev1.TaintNodeUnreachable
	}
	return corev1.TaintNodeNotReady
}

// evictionTaint is the NoExecute taint that the Node should have in the end; "" for none. A Node that has never
// reported has nothing to lose yet.
func evictionTaint(node *corev1.Node) string {
	if conditions.Node.Find(node.Status.Conditions, corev1.NodeReady) == nil {
		return ""
	}
	return readyTaint(node)
}

// noSchedule lists the keys of the NoSchedule taints that the Node should have.
func noSchedule(node *corev1.Node) []string {
	var keys []string
	if key := readyTaint(node); key != "" {
		keys = append(keys, key)
	}
	for _, p := range pressures {
		c := conditions.Node.Find(node.Status.Conditions, p.condition)
		if c != nil && c.Status == corev1.ConditionTrue {
			keys = append(keys, p.taint)
		}
	}
	if node.Spec.Unschedulable {
		keys = append(keys, corev1.TaintNodeUnschedulable)
	}
	return keys
}

// isOurs reports whether only this collector decides on the taint.
func isOurs(t corev1.Taint) bool {
	switch t.Key {
	case corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable:
		return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
	case corev1.TaintNodeMemoryPressure, corev1.TaintNodeDiskPressure, corev1.TaintNodePIDPressure,
		corev1.TaintNodeNetworkUnavailable, corev1.TaintNodeUnschedulable:
		return t.Effect == corev1.TaintEffectNoSchedule
	}
	return false
}

// isEviction reports whether the taint is one of those that evict Pods from a node in trouble.
func isEviction(t corev1.Taint) bool { return isOurs(t) && t.Effect == corev1.TaintEffectNoExecute }

// retaint returns the Node's taints as they should be, and whether that is a change. evict is the key of the
// NoExecute taint to have, "" for none. Taints of others stay, and so does one that is there already, with its time.
func retaint(node *corev1.Node, evict string, now time.Time) (taints []corev1.Taint, changed bool) {
	var wanted []corev1.Taint
	added := metav1.NewTime(now)
	for _, key := range noSchedule(node) {
		wanted = append(wanted, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule, TimeAdded: &added})
	}
	if evict != "" {
		wanted = append(wanted, corev1.Taint{Key: evict, Effect: corev1.TaintEffectNoExecute, TimeAdded: &added})
	}
	for _, taint := range node.Spec.Taints {
		at := slices.IndexFunc(wanted, func(w corev1.Taint) bool { return w.MatchTaint(&taint) })
		switch {
		case at >= 0:
			wanted = slices.Delete(wanted, at, at+1)
			taints = append(taints, taint)
		case !isOurs(taint):
			taints = append(taints, taint)
		default:
			changed = true
		}
	}
	return append(taints, wanted...), changed || len(wanted) > 0
}
