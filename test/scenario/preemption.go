package scenario

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/test/mesh"
)

// looked keeps a Pod that has ended until the test has looked at it.
const looked = "example.com/looked"

// plug is a Pod of a priority class that takes the dongle.
func plug(name, class string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {name: %s, finalizers: [%s]}
spec:
  priorityClassName: %s
  terminationGracePeriodSeconds: 3
  containers:
  - name: main
    image: %s
    lifecycle: {preStop: {sleep: {seconds: 2}}}
    resources: {limits: {%s: 1}}
`, name, looked, class, Server, dongle)
}

// Preemption gives a node one dongle, which a Pod of low priority takes. Neither a Pod of the same priority nor one
// that preempts no Pod gets it; a Pod of higher priority does, when the first has ended in its own time.
//
// SCH-035 SCH-036 SCH-041 SCH-042 SCH-044 SCH-050 SCH-063 SCH-065 SAF-066
func Preemption(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	node := m.Nodes()[0]
	defer offerDongles(w, node, "null")
	offerDongles(w, node, `"1"`)
	class := func(name string) string { return w.Namespace + "-" + name }
	for name, args := range map[string][]string{"low": {"--value=10"}, "high": {"--value=1000"},
		"polite": {"--value=500", "--preemption-policy=Never"}} {
		w.Kubectl(append([]string{"create", "priorityclass", class(name)}, args...)...)
		defer w.Kubectl("delete", "priorityclass", class(name))
	}
	w.KubectlWith(plug("victim", class("low")), "create", "-f", "-")
	w.Kubectl("wait", "--for=condition=Ready", "pod/victim", "--timeout=60s")
	waits := map[string]string{"equal": "low", "patient": "polite"}
	for name, of := range waits {
		w.KubectlWith(plug(name, class(of)), "create", "-f", "-")
		w.Await(name+" to wait", func() Answer { return unscheduled(w.pod(name)) })
	}
	if victim := w.pod("victim"); victim.DeletionTimestamp != nil {
		t.Errorf("the victim goes for a Pod that preempts nobody")
	}
	w.KubectlWith(plug("urgent", class("high")), "create", "-f", "-")
	w.Await("the victim to take its leave while the other waits for it", func() Answer {
		victim, urgent := w.pod("victim"), w.pod("urgent")
		if grace := victim.DeletionGracePeriodSeconds; grace == nil || *grace != 3 ||
			urgent.Spec.NodeName != "" || urgent.Status.NominatedNodeName != node {
			return Sawf("grace %v; on %q, nominated for %q", ptr.Deref(grace, -1), urgent.Spec.NodeName,
				urgent.Status.NominatedNodeName)
		}
		return ""
	})
	w.Kubectl("wait", "--for=condition=Ready", "pod/urgent", "--timeout=60s")
	victim, urgent := w.pod("victim"), w.pod("urgent")
	if urgent.Spec.NodeName != node {
		t.Errorf("the Pod is on %q", urgent.Spec.NodeName)
	}
	why := condition(victim, corev1.DisruptionTarget)
	if why.Reason != "PreemptionByScheduler" ||
		why.Message != "default-scheduler: preempting to accommodate a higher priority pod" {
		t.Errorf("the victim goes for %s: %s", why.Reason, why.Message)
	}
	told := fmt.Sprintf("Preempted by pod %s on node %s", urgent.UID, node)
	w.Await("the victim's event", func() Answer {
		got := w.Kubectl("get", "events", "--field-selector=reason=Preempted,involvedObject.name=victim")
		if !strings.Contains(got, told) {
			return Saw(got)
		}
		return ""
	})
	for name := range waits {
		if left := unscheduled(w.pod(name)); left != "" {
			t.Errorf("%s: %s", name, left)
		}
	}
	for _, pod := range w.Pods("") {
		w.Kubectl("patch", "pod", pod.Name, "--type=merge", `--patch={"metadata":{"finalizers":null}}`)
	}
}

// unscheduled says what is otherwise if a Pod does not wait for room.
func unscheduled(p *corev1.Pod) Answer {
	c := condition(p, corev1.PodScheduled)
	if p.Spec.NodeName != "" || p.Status.NominatedNodeName != "" || c.Reason != corev1.PodReasonUnschedulable ||
		!strings.Contains(c.Message, "Insufficient "+dongle) {
		return Sawf("on %q, nominated for %q, %s: %s", p.Spec.NodeName, p.Status.NominatedNodeName, c.Reason,
			c.Message)
	}
	return ""
}

func condition(p *corev1.Pod, kind corev1.PodConditionType) corev1.PodCondition {
	for _, c := range p.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return corev1.PodCondition{}
}

// offerDongles lets an administrator say through a node's status how many dongles it has, as JSON, and waits until the
// node offers them.
func offerDongles(w *World, node, amount string) {
	w.Helper()
	w.Kubectl("patch", "node", node, "--subresource=status", "--type=merge",
		"-p", `{"status":{"capacity":{"`+dongle+`":`+amount+`}}}`)
	want := strings.Trim(amount, `"`)
	w.Await("the node to offer "+want+" dongles", func() Answer {
		got, err := w.Client.CoreV1().Nodes().Get(w.Context(), node, metav1.GetOptions{})
		if err != nil {
			return Saw(err.Error())
		}
		offered, has := got.Status.Allocatable[dongle]
		if text := offered.String(); has != (want != "null") || has && text != want {
			return Sawf("it offers %s", text)
		}
		return ""
	})
}
