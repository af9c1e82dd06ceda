package scenario

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/test/mesh"
)

// agent is a DaemonSet in the shape of the documentation's fluentd-elasticsearch.
func agent(name, image, nodeSelector string) string {
	return fmt.Sprintf(`apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: %[1]s
  labels: {k8s-app: fluentd-logging}
spec:
  selector: {matchLabels: {name: %[1]s}}
  template:
    metadata: {labels: {name: %[1]s}}
    spec:
      nodeSelector: {%[3]s}
      tolerations:
      - {key: node-role.kubernetes.io/control-plane, operator: Exists, effect: NoSchedule}
      - {key: node-role.kubernetes.io/master, operator: Exists, effect: NoSchedule}
      containers:
      - name: agent
        image: %[2]s
        resources: {limits: {memory: 200Mi}, requests: {cpu: 10m, memory: 20Mi}}
        volumeMounts: [{name: varlog, mountPath: /var/log}]
      terminationGracePeriodSeconds: 1
      volumes: [{name: varlog, hostPath: {path: /var/log}}]
`, name, image, nodeSelector)
}

// DaemonSetOnJoiningNode runs a DaemonSet on the mesh's node and on one that joins later, and does with it what users
// do.
//
// POD-013 SET-114 SET-115 SET-117 SET-123 SET-129 SET-133 SET-134 SET-142 SET-152 SET-153 SET-154 SET-155 SET-156
// SET-158 SET-159 SET-160 SET-163
func DaemonSetOnJoiningNode(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(agent("agent", HelloV1, ""), "apply", "-f", "-")
	awaitDaemonSet(w, "agent", HelloV1, m.Nodes()...)
	if got := strings.Join(strings.Fields(w.Kubectl("get", "daemonset", "agent")), " "); !strings.HasPrefix(got,
		"NAME DESIRED CURRENT READY UP-TO-DATE AVAILABLE NODE SELECTOR AGE agent 1 1 1 1 1 <none> ") {
		t.Errorf("get daemonset: %s", got)
	}
	expectNodeAffinity(w, "agent", m.Nodes()[0])

	first, second := m.Nodes()[0], m.AddNode(t)
	awaitDaemonSet(w, "agent", HelloV1, first, second)
	t.Run("Labels", func(t *testing.T) { daemonsByLabel(w, second) })
	t.Run("Replacement", func(t *testing.T) { daemonsReplaced(w, first, second) })
	t.Run("Update", func(t *testing.T) { daemonsUpdated(w, first, second) })
	w.awaitOutput([]string{"SuccessfulCreate", "daemonset-controller", "Created pod: agent-", "SuccessfulDelete",
		"Deleted pod: agent-"}, "describe", "daemonset", "agent")
	t.Run("Orphans", func(t *testing.T) { daemonsLeft(w, first, second) })
	w.Kubectl("delete", "daemonset", "agent", "--wait=false")
	w.awaitActive("name=agent", 0)
}

// daemonsByLabel has a Pod on a node for as long as the node has a label.
func daemonsByLabel(w *World, node string) {
	w.KubectlWith(agent("ssd", HelloV1, "disk: ssd"), "apply", "-f", "-")
	awaitDaemonSet(w, "ssd", HelloV1)
	w.Kubectl("label", "node", node, "disk=ssd")
	awaitDaemonSet(w, "ssd", HelloV1, node)
	if got := strings.Fields(w.Kubectl("get", "daemonset", "ssd", "--no-headers")); len(got) != 8 ||
		strings.Join(got[:7], " ") != "ssd 1 1 1 1 1 disk=ssd" {
		w.Errorf("get daemonset: %v", got)
	}
	w.Kubectl("label", "node", node, "disk-")
	awaitDaemonSet(w, "ssd", HelloV1)
	w.Kubectl("delete", "daemonset", "ssd")
}

// daemonsReplaced changes a Pod, and then ends those of both nodes, one of which takes no others at the time.
func daemonsReplaced(w *World, first, second string) {
	daemon := w.Pods("name=agent")[0]
	if limit := daemon.Spec.Containers[0].Resources.Limits.Memory().String(); limit != "200Mi" {
		w.Errorf("a daemon may use %s of memory, want the template's 200Mi", limit)
	}
	changed := daemon.Name
	w.Kubectl("set", "image", "pod/"+changed, "agent="+HelloV2)
	if w.Mesh.RealContainers() {
		w.Await("what a daemon prints", func() Answer {
			if r := w.TryKubectl("", "logs", "daemonset/agent"); r.Stdout == "" {
				return Sawf("nothing: %s", r.Stderr)
			}
			return ""
		})
	}
	before := w.podUIDs("name=agent")
	w.Kubectl("cordon", second)
	w.Kubectl("delete", "pod", "-l", "name=agent")
	awaitDaemonSet(w, "agent", HelloV1, first, second)
	w.Kubectl("uncordon", second)
	if after := w.podUIDs("name=agent"); strings.Contains(before, strings.Fields(after)[0]) {
		w.Errorf("Pods %s, before %s", after, before)
	}
}

// daemonsUpdated changes the image, looks at the history and goes back.
func daemonsUpdated(w *World, nodes ...string) {
	w.says("daemonset.apps/agent image updated", "set", "image", "daemonset/agent", "agent="+HelloV2)
	if got := w.Kubectl("rollout", "status", "daemonset/agent", "--timeout=90s"); !strings.Contains(got,
		`daemon set "agent" successfully rolled out`) {
		w.Errorf("rollout status: %s", got)
	}
	awaitDaemonSet(w, "agent", HelloV2, nodes...)
	w.says("daemonset.apps/agent \nREVISION  CHANGE-CAUSE\n1         <none>\n2         <none>", "rollout", "history",
		"daemonset/agent")
	if got := w.Kubectl("rollout", "history", "daemonset/agent", "--revision=1"); !strings.Contains(got, HelloV1) {
		w.Errorf("revision 1 is %s", got)
	}
	w.says("daemonset.apps/agent rolled back", "rollout", "undo", "daemonset/agent")
	awaitDaemonSet(w, "agent", HelloV1, nodes...)
	w.says("daemonset.apps/agent \nREVISION  CHANGE-CAUSE\n2         <none>\n3         <none>", "rollout", "history",
		"daemonset/agent")
	w.Kubectl("rollout", "restart", "daemonset/agent")
	w.Kubectl("rollout", "status", "daemonset/agent", "--timeout=90s")
}

// daemonsLeft deletes the DaemonSet but not its Pods, and makes it again.
func daemonsLeft(w *World, nodes ...string) {
	template := w.Kubectl("get", "daemonset", "agent", "-o", "json")
	before := w.podUIDs("name=agent")
	w.Kubectl("delete", "daemonset", "agent", "--cascade=orphan")
	if after := w.podUIDs("name=agent"); after != before {
		w.Errorf("Pods %s are left of %s", after, before)
	}
	w.KubectlWith(withoutStatus(w, template), "create", "-f", "-")
	awaitDaemonSet(w, "agent", HelloV1, nodes...)
	if after := w.podUIDs("name=agent"); after != before {
		w.Errorf("Pods %s took the place of %s", after, before)
	}
}

// withoutStatus is an object as a user would create it again.
func withoutStatus(w *World, object string) string {
	w.Helper()
	var fields map[string]any
	if err := json.Unmarshal([]byte(object), &fields); err != nil {
		w.Fatalf("reading what kubectl printed: %v", err)
	}
	delete(fields, "status")
	fields["metadata"] = map[string]any{"name": "agent"}
	again, err := json.Marshal(fields)
	if err != nil {
		w.Fatal(err)
	}
	return string(again)
}

// awaitDaemonSet waits until the DaemonSet has one Pod of the image, which serves, on each of the nodes and no other,
// and says so.
func awaitDaemonSet(w *World, name, image string, nodes ...string) {
	w.Helper()
	slices.Sort(nodes)
	w.Await(fmt.Sprintf("Pods of %s on %v", name, nodes), func() Answer {
		var on []string
		for _, pod := range w.Pods("name=" + name) {
			if pod.Spec.Containers[0].Image != image || pod.DeletionTimestamp != nil {
				return Sawf("Pod %s has image %s", pod.Name, pod.Spec.Containers[0].Image)
			}
			on = append(on, pod.Spec.NodeName)
		}
		if slices.Sort(on); !slices.Equal(on, nodes) {
			return Sawf("Pods on %q", on)
		}
		set, err := w.Client.AppsV1().DaemonSets(w.Namespace).Get(w.Context(), name, metav1.GetOptions{})
		if err != nil {
			return Saw(err.Error())
		}
		s, want := set.Status, int32(len(nodes))
		if s.ObservedGeneration != set.Generation || s.DesiredNumberScheduled != want || s.NumberUnavailable != 0 ||
			s.UpdatedNumberScheduled != want || s.NumberMisscheduled != 0 || s.CurrentNumberScheduled != want {
			return Sawf("status %+v", s)
		}
		return ""
	})
}

// expectNodeAffinity looks at the one Pod of a DaemonSet.
func expectNodeAffinity(w *World, name, node string) {
	w.Helper()
	pod := w.Pods("name=" + name)[0]
	required := pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	if len(required) != 1 || len(required[0].MatchFields) != 1 || required[0].MatchFields[0].Values[0] != node {
		w.Errorf("required terms %+v, want those for node %s", required, node)
	}
	tolerates := func(key string, effect corev1.TaintEffect) bool {
		return slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool {
			return t.Key == key && t.Effect == effect && t.Operator == corev1.TolerationOpExists &&
				t.TolerationSeconds == nil
		})
	}
	if !tolerates(corev1.TaintNodeNotReady, corev1.TaintEffectNoExecute) ||
		!tolerates(corev1.TaintNodeUnschedulable, corev1.TaintEffectNoSchedule) ||
		!tolerates("node-role.kubernetes.io/control-plane", corev1.TaintEffectNoSchedule) {
		w.Errorf("tolerations %+v", pod.Spec.Tolerations)
	}
	if pod.Labels["pod-template-generation"] != "1" || pod.Labels["controller-revision-hash"] == "" {
		w.Errorf("labels %v", pod.Labels)
	}
}
