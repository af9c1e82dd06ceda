package vm

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/test/scenario"
)

// lasting are Pods of all kinds that a restart of the machine meets: of a Deployment, of a Job that is not done, alone
// and not to be started again.
const lasting = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web, lasting: "yes"}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: main
        image: ` + scenario.Server + `
        args: ["-http="]
        volumeMounts: [{name: scratch, mountPath: /scratch}]
      volumes: [{name: scratch, emptyDir: {}}]
---
apiVersion: batch/v1
kind: Job
metadata: {name: work}
spec:
  template:
    metadata: {labels: {app: work, lasting: "yes"}}
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 1
      containers: [{name: main, image: "` + scenario.Server + `", args: ["-http="]}]
---
apiVersion: v1
kind: Pod
metadata: {name: once, labels: {app: once, lasting: "yes"}}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: "` + scenario.Server + `", args: ["-http="]}]
`

// lastingPods is how many Pods these are.
const lastingPods = 4

// stopped puts a machine's end, whatever it is, between two looks at its Pods: those that may be started again are the
// same, run once more and once only; those that may not have failed, and the Job has another. (JOB-004, JOB-056,
// POD-128)
func stopped(t *testing.T, m *Mesh, stop func(w *scenario.World)) {
	w := scenario.In(t, m)
	before := lastingIn(w)
	stop(w)
	m.Again(t)
	w.Await("the Pods to be as a restart leaves them", func() string { return afterRestart(w, before) })
	expectOnce(t, w, m)
}

// lastingIn starts the Pods and returns them by name.
func lastingIn(w *scenario.World) map[string]corev1.Pod {
	w.KubectlWith(lasting, "apply", "-f", "-")
	w.Await("all Pods to run", func() string {
		pods := w.Pods("lasting")
		if n := len(pods); n != lastingPods || slices.ContainsFunc(pods, notReady) {
			return fmt.Sprintf("%d Pods:\n%s", n, w.Kubectl("get", "pods"))
		}
		return ""
	})
	before := map[string]corev1.Pod{}
	for _, pod := range w.Pods("lasting") {
		before[pod.Name] = pod
	}
	return before
}

// restart restarts the machine in the orderly way, which also keeps what Pods have in their volumes.
func restart(t *testing.T, m *Mesh) {
	var kept []string
	var world *scenario.World
	stopped(t, m, func(w *scenario.World) {
		world = w
		for _, pod := range w.Pods("app=web") {
			w.Kubectl("exec", pod.Name, "--", "sh", "-c", "echo kept > /scratch/"+pod.Name)
			kept = append(kept, pod.Name)
		}
		m.Reboot(t)
	})
	for _, name := range kept {
		if got := world.Kubectl("exec", name, "--", "cat", "/scratch/"+name); got != "kept\n" {
			t.Errorf("the emptyDir of %s holds %q", name, got)
		}
	}
}

func notReady(pod corev1.Pod) bool {
	return !slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// afterRestart says what is not yet, or not, as it should be.
func afterRestart(w *scenario.World, before map[string]corev1.Pod) string {
	list, err := w.Client.CoreV1().Pods(w.Namespace).List(w.Context(), metav1.ListOptions{LabelSelector: "lasting"})
	if err != nil {
		return err.Error()
	}
	pods := list.Items
	var wrong []string
	for _, pod := range pods {
		old, known := before[pod.Name]
		if known && pod.UID != old.UID {
			wrong = append(wrong, pod.Name+" is another Pod")
		}
		switch app := pod.Labels["app"]; {
		case app == "web" && (!known || notReady(pod) || pod.Status.ContainerStatuses[0].RestartCount != 1 ||
			pod.Status.ContainerStatuses[0].ContainerID == old.Status.ContainerStatuses[0].ContainerID):
			wrong = append(wrong, fmt.Sprintf("%s (known %v): %s", pod.Name, known, brief(&pod)))
		case app != "web" && known && pod.Status.Phase != corev1.PodFailed, app != "web" && !known && notReady(pod):
			wrong = append(wrong, fmt.Sprintf("%s (known %v): %s", pod.Name, known, brief(&pod)))
		}
	}
	if want := lastingPods + 1; len(pods) != want { // the Job's second
		wrong = append(wrong, fmt.Sprintf("there are %d Pods, want %d", len(pods), want))
	}
	return strings.Join(wrong, "; ")
}

func brief(pod *corev1.Pod) string {
	text := string(pod.Status.Phase)
	for _, c := range pod.Status.ContainerStatuses {
		text += fmt.Sprintf(", %s ready %v, %d restarts, %+v", c.Name, c.Ready, c.RestartCount, c.State)
	}
	return text
}

// expectOnce counts the processes themselves: each running container has one.
func expectOnce(t *testing.T, w *scenario.World, m *Mesh) {
	t.Helper()
	running := 0
	for _, pod := range w.Pods("lasting") {
		if pod.Status.Phase == corev1.PodRunning {
			running += len(pod.Spec.Containers)
		}
	}
	w.Await("one process for each running container", func() string {
		if got := m.result(w.Context(), "pgrep -c testserver"); got != fmt.Sprint(running) {
			return fmt.Sprintf("%s processes of %d containers:\n%s", got, running,
				m.result(w.Context(), "pgrep -a testserver"))
		}
		return ""
	})
}
