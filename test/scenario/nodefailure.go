package scenario

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/podview"
	"keelson.dev/test/mesh"
)

// impatient is a workload of one Pod that leaves a node 2 seconds after it was given up.
func impatient(kind, name string) string {
	more := map[string]string{"StatefulSet": "  serviceName: db\n"}[kind]
	return fmt.Sprintf(`apiVersion: apps/v1
kind: %[1]s
metadata: {name: %[2]s}
spec:
%[4]s  replicas: 1
  selector: {matchLabels: {app: %[2]s}}
  template:
    metadata: {labels: {app: %[2]s}}
    spec:
      terminationGracePeriodSeconds: 1
      tolerations:
      - {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 2}
      - {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 2}
      containers: [{name: main, image: %[3]s}]
---
`, kind, name, HelloV1, more)
}

// NodeFailure cuts off one node of several, on a mesh that does not wait long for it. Its Pods are told apart by what
// their owners promise: the Deployment's is replaced at once, the StatefulSet's identity is held until the node is
// back, and the daemon stays.
//
// POD-080 POD-081 POD-082 SAF-065 SAF-067 SAF-153 SAF-154 SAF-171 SAF-172 SAF-179 SET-066 SET-148 DEP-155
func NodeFailure(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	before := fillNode(w, m.Nodes()[1])
	victim := m.Nodes()[1]
	m.StopNode(t, victim)
	awaitLostNode(w, victim)
	w.Await("the Pods of the lost node to be ended", func() Answer {
		for _, name := range []string{"app=web", "app=db"} {
			p := w.pod(before[name].Name)
			if c := podview.Condition(p, corev1.DisruptionTarget); p.UID != before[name].UID ||
				p.DeletionTimestamp == nil || *p.DeletionGracePeriodSeconds != 1 || podview.IsReady(p) ||
				c == nil || c.Reason != "DeletionByTaintManager" ||
				c.Message != "Taint manager: deleting due to NoExecute taint" {
				return Sawf("%s: uid %s, deleted %v, conditions %+v", p.Name, p.UID, p.DeletionTimestamp,
					p.Status.Conditions)
			}
		}
		return ""
	})
	w.AwaitAvailable("web", 1)
	w.awaitOutput([]string{"TaintManagerEviction", "taint-eviction-controller", "Marking for deletion Pod " +
		w.Namespace + "/db-0", "NodeNotReady", "node-controller", "Node is not ready"}, "describe", "pod", "db-0")
	expectPodsHeld(w, before, victim)

	m.StartNode(t, victim)
	awaitPodsInOrder(w, victim)
	w.Await("another db-0, and the old Pods to be gone", func() Answer {
		for _, name := range []string{"app=web", "app=db"} {
			pods := w.Pods(name)
			if len(pods) != 1 || pods[0].UID == before[name].UID || !podview.IsReady(&pods[0]) {
				return Sawf("%d Pods %s", len(pods), name)
			}
		}
		return ""
	})
	awaitDaemonSet(w, "agent", HelloV1, m.Nodes()...)
	if p := w.pod(before["name=agent"].Name); p.UID != before["name=agent"].UID {
		t.Errorf("the daemon was replaced")
	}
	w.Kubectl("delete", "deployment,statefulset,daemonset", "--all")
}

// fillNode runs one Pod of each kind on the node and returns them by their selectors.
func fillNode(w *World, node string) map[string]corev1.Pod {
	w.Helper()
	for _, other := range w.Mesh.Nodes() {
		if other != node {
			w.Kubectl("cordon", other)
		}
	}
	w.KubectlWith(impatient("Deployment", "web")+impatient("StatefulSet", "db")+agent("agent", HelloV1, ""), "apply",
		"-f", "-")
	w.AwaitAvailable("web", 1)
	awaitDaemonSet(w, "agent", HelloV1, w.Mesh.Nodes()...)
	pods := map[string]corev1.Pod{}
	for _, selector := range []string{"app=web", "app=db", "name=agent"} {
		w.Await("a Pod "+selector+" that serves on "+node, func() Answer {
			for _, p := range w.Pods(selector) {
				if p.Spec.NodeName == node && podview.IsReady(&p) {
					pods[selector] = p
					return ""
				}
			}
			return "there is none"
		})
	}
	for _, other := range w.Mesh.Nodes() {
		w.Kubectl("uncordon", other)
	}
	return pods
}

// awaitLostNode waits until the Node says that it is silent and its Pods have to go.
func awaitLostNode(w *World, name string) {
	w.Helper()
	w.Await("node "+name+" to be lost", func() Answer {
		node, err := w.Client.CoreV1().Nodes().Get(w.Context(), name, metav1.GetOptions{})
		if err != nil {
			return Saw(err.Error())
		}
		var said []string
		for _, c := range node.Status.Conditions {
			if c.Status == corev1.ConditionUnknown && c.Reason == "NodeStatusUnknown" && c.Message ==
				"Kubelet stopped posting node status." {
				said = append(said, string(c.Type))
			}
		}
		var taints []string
		for _, taint := range node.Spec.Taints {
			if taint.TimeAdded != nil {
				taints = append(taints, taint.ToString())
			}
		}
		if slices.Sort(taints); !slices.Contains(said, "Ready") || strings.Join(taints, " ") !=
			"node.kubernetes.io/unreachable:NoExecute node.kubernetes.io/unreachable:NoSchedule" {
			return Sawf("conditions %v, taints %v", said, taints)
		}
		return ""
	})
	if got := strings.Fields(w.Kubectl("get", "node", name, "--no-headers"))[1]; got != "NotReady" {
		w.Errorf("kubectl says that the node is %s", got)
	}
}

// awaitPodsInOrder waits until the Node is ready and takes Pods.
func awaitPodsInOrder(w *World, name string) {
	w.Helper()
	w.Await("node "+name+" to take Pods again", func() Answer {
		node, err := w.Client.CoreV1().Nodes().Get(w.Context(), name, metav1.GetOptions{})
		if err != nil {
			return Saw(err.Error())
		}
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue && len(node.Spec.Taints) == 0 {
				return ""
			}
		}
		return Sawf("conditions %+v, taints %v", node.Status.Conditions, node.Spec.Taints)
	})
}

// expectPodsHeld looks at what must not happen while a node is cut off, now that all else has happened: its Pods are
// still in the API, no second one has the StatefulSet's identity, and the daemon is none of the taints' business.
func expectPodsHeld(w *World, before map[string]corev1.Pod, node string) {
	w.Helper()
	if pods := w.Pods("app=db"); len(pods) != 1 || pods[0].UID != before["app=db"].UID {
		w.Errorf("%d Pods of the StatefulSet", len(pods))
	}
	var on []string
	for _, p := range w.Pods("app=web") {
		if p.DeletionTimestamp == nil {
			on = append(on, p.Spec.NodeName)
		}
	}
	if len(on) != 1 || on[0] == node {
		w.Errorf("the Deployment's Pods are on %v", on)
	}
	p := w.pod(before["name=agent"].Name)
	if p.UID != before["name=agent"].UID || p.DeletionTimestamp != nil || podview.IsReady(p) ||
		podview.Condition(p, corev1.DisruptionTarget) != nil {
		w.Errorf("the daemon: deleted %v, conditions %+v", p.DeletionTimestamp, p.Status.Conditions)
	}
}

// NodeRemoved deletes the Node of a machine that is gone for good: what held the StatefulSet's identity is marked as
// failed and taken away, and another Pod of the name runs elsewhere.
//
// POD-079 SAF-160 SAF-169 SAF-173
func NodeRemoved(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	victim := m.Nodes()[1]
	before := fillNode(w, victim)
	m.StopNode(t, victim)
	awaitLostNode(w, victim)
	seen := watchLastPods(w)
	w.Kubectl("delete", "node", victim, "--wait=false")
	w.Await("another db-0", func() Answer {
		pods := w.Pods("app=db")
		if len(pods) != 1 || pods[0].UID == before["app=db"].UID || !podview.IsReady(&pods[0]) {
			return Sawf("%d Pods", len(pods))
		}
		if pods[0].Spec.NodeName == victim {
			t.Errorf("it is on %s", victim)
		}
		return ""
	})
	w.Await("how the old one went", func() Answer {
		last := seen.of(before["app=db"].UID)
		if c := podview.Condition(last, corev1.DisruptionTarget); last.Status.Phase != corev1.PodFailed || c == nil ||
			c.Reason != "DeletionByPodGC" {
			return Sawf("phase %s, conditions %+v", last.Status.Phase, last.Status.Conditions)
		}
		return ""
	})
}

// TaintBasedEviction evicts Pods as an operator does: a Pod that does not tolerate the taint is evicted at once,
// the end of the taint cuts a limited toleration short, and a Pod that tolerates the taint for ever stays.
//
// SAF-065 SAF-067
func TaintBasedEviction(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	bound := func(name, more string) string {
		return strings.Replace(barePod(name, HelloV1), "spec: {", "spec: {nodeName: "+m.Nodes()[0]+", "+more, 1) +
			"---\n"
	}
	tolerating := func(more string) string {
		return fmt.Sprintf("tolerations: [{key: tests.keelson.dev/%s, operator: Exists, effect: NoExecute%s}], ",
			w.Namespace, more)
	}
	w.KubectlWith(bound("patient", tolerating(", tolerationSeconds: 3600"))+bound("stoic", tolerating(""))+
		bound("plain", ""), "apply", "-f", "-")
	w.Kubectl("wait", "--for=condition=Ready", "pod", "--all", "--timeout=60s")
	patient, stoic := w.pod("patient").UID, w.pod("stoic").UID
	taint := "tests.keelson.dev/" + w.Namespace + "=yes:NoExecute"
	defer w.TryKubectl("", "taint", "nodes", m.Nodes()[0], taint+"-")
	plain, seen := w.pod("plain").UID, watchLastPods(w)
	w.Kubectl("taint", "nodes", m.Nodes()[0], taint)
	w.awaitGone("pod", "plain")
	w.Await("the reason that plain went", func() Answer {
		last := seen.of(plain)
		if c := podview.Condition(last, corev1.DisruptionTarget); c == nil || c.Reason != "DeletionByTaintManager" {
			return Sawf("conditions %+v", last.Status.Conditions)
		}
		return ""
	})
	w.Kubectl("taint", "nodes", m.Nodes()[0], taint+"-")
	w.awaitOutput([]string{"TaintManagerEviction", "Cancelling deletion of Pod " + w.Namespace + "/patient"},
		"describe",
		"pod", "patient")
	if a, b := w.pod("patient"), w.pod("stoic"); a.UID != patient || b.UID != stoic || a.DeletionTimestamp != nil ||
		b.DeletionTimestamp != nil {
		t.Errorf("deleted: %v, %v", a.DeletionTimestamp, b.DeletionTimestamp)
	}
}

// lastPods are the last states of all Pods that there are or have been since watchLast.
type lastPods struct {
	mu   sync.Mutex // guards what follows
	pods map[types.UID]*corev1.Pod
	// newest is the newest version of a Pod that was seen.
	newest int64
}

// of is the last state of the Pod, or an empty one.
func (l *lastPods) of(uid types.UID) *corev1.Pod {
	l.mu.Lock()
	defer l.mu.Unlock()
	return cmp.Or(l.pods[uid], &corev1.Pod{})
}

// count is how many Pods there have been.
func (l *lastPods) count(w *World) int {
	w.Helper()
	awaitSeen(w, func() int64 {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.newest
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.pods)
}

func watchLastPods(w *World) *lastPods {
	w.Helper()
	watcher, err := w.Client.CoreV1().Pods(w.Namespace).Watch(w.Context(), metav1.ListOptions{})
	if err != nil {
		w.Fatalf("watching Pods: %v", err)
	}
	w.Cleanup(watcher.Stop)
	l := &lastPods{pods: map[types.UID]*corev1.Pod{}}
	go func() {
		for event := range watcher.ResultChan() {
			if p, ok := event.Object.(*corev1.Pod); ok {
				l.mu.Lock()
				l.pods[p.UID], l.newest = p, max(l.newest, versionOf(p))
				l.mu.Unlock()
			}
		}
	}()
	return l
}
