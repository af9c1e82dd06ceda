package scenario

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/test/mesh"
)

// rackGroup is a group of two large Pods whose nodes are in one rack; the label and the class are to be filled in.
const rackGroup = `apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: pair}
spec:
  priorityClassName: %[2]s
  schedulingPolicy: {gang: {minCount: 2}}
  schedulingConstraints: {topology: [{key: %[1]s}]}
---
apiVersion: v1
kind: Pod
metadata: {name: first}
spec:
  schedulingGroup: {podGroupName: pair}
  priorityClassName: %[2]s
  containers: [{name: main, image: ` + Server + `, resources: {requests: {cpu: "3"}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: second}
spec:
  schedulingGroup: {podGroupName: pair}
  priorityClassName: %[2]s
  containers: [{name: main, image: ` + Server + `, resources: {requests: {cpu: "3"}}}]
`

// resident is a Pod of a priority class that takes so much CPU of its node.
func resident(name, class, node, cpu string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {name: %s, finalizers: [%s]}
spec:
  priorityClassName: %s
  nodeSelector: {kubernetes.io/hostname: %s}
  containers: [{name: main, image: %s, resources: {requests: {cpu: %q}}}]
`, name, looked, class, node, Server, cpu)
}

// GangPreemption has a group of two want the room of others in one rack. Of the two nodes of one rack, one is a more
// important Pod's; the other rack has one node. So no Pod goes, and no room is kept. When that Pod has gone, the Pod
// beside it goes, and not the least important one, which is in the other rack.
//
// SCH-035 SCH-036 SCH-041
func GangPreemption(t *testing.T, m mesh.Mesh) {
	w := Alone(t, m)
	nodes := m.Nodes()
	rack := "rack." + w.Namespace
	for i, node := range nodes {
		w.Kubectl("label", "node", node, rack+"="+[]string{"a", "a", "b"}[i])
		defer w.Kubectl("label", "node", node, rack+"-")
	}
	class := func(name string) string { return w.Namespace + "-" + name }
	for name, value := range map[string]string{"least": "5", "low": "10", "group": "1000", "top": "2000"} {
		w.Kubectl("create", "priorityclass", class(name), "--value="+value)
		defer w.Kubectl("delete", "priorityclass", class(name))
	}
	w.KubectlWith(resident("cheap", class("low"), nodes[0], "3"), "create", "-f", "-")
	w.KubectlWith(resident("strong", class("top"), nodes[1], "3"), "create", "-f", "-")
	w.KubectlWith(resident("cheapest", class("least"), nodes[2], "3"), "create", "-f", "-")
	w.Kubectl("wait", "--for=condition=Ready", "pod", "--all", "--timeout=60s")
	journal := journalPods(w)

	w.KubectlWith(fmt.Sprintf(rackGroup, rack, class("group")), "create", "-f", "-")
	for _, name := range []string{"first", "second"} {
		w.Await(name+" to say why it waits", func() Answer {
			p := w.pod(name)
			said := condition(p, corev1.PodScheduled).Message
			if p.Spec.NodeName != "" || p.Status.NominatedNodeName != "" ||
				!strings.HasPrefix(said, "no node of one value of label "+rack+" can take a pod of pod group pair") ||
				!strings.Contains(said, "preemption: no pods of lower priority make room for enough of the group.") {
				return Sawf("on %q, nominated for %q: %s", p.Spec.NodeName, p.Status.NominatedNodeName, said)
			}
			return ""
		})
	}
	w.KubectlWith(resident("filler", class("least"), nodes[0], "1"), "create", "-f", "-")
	w.Kubectl("wait", "--for=condition=Ready", "pod/filler", "--timeout=60s")
	if gone := journal.names(w, "ending"); gone != nil {
		t.Errorf("%v go for a group that does not fit", gone)
	}

	w.Kubectl("delete", "pod", "strong", "--wait=false")
	w.Kubectl("wait", "--for=condition=Ready", "pod/first", "pod/second", "--timeout=60s")
	on := []string{w.pod("first").Spec.NodeName, w.pod("second").Spec.NodeName}
	slices.Sort(on)
	if want := slices.Sorted(slices.Values(nodes[:2])); !slices.Equal(on, want) {
		t.Errorf("the group is on %v, want the nodes %v of one rack", on, want)
	}
	if gone := journal.names(w, "ending"); !slices.Equal(gone, []string{"strong", "cheap"}) {
		t.Errorf("%v went, want the one that was deleted and one victim", gone)
	}
	if why := condition(w.pod("cheap"), corev1.DisruptionTarget); why.Reason != "PreemptionByScheduler" {
		t.Errorf("the victim goes for %s: %s", why.Reason, why.Message)
	}
	for _, pod := range w.Pods("") {
		w.Kubectl("patch", "pod", pod.Name, "--type=merge", `--patch={"metadata":{"finalizers":null}}`)
	}
}
