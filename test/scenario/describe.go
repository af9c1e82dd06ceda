package scenario

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/test/mesh"
)

// initializing is the Pod of the documentation of init containers. No scheduler takes it: the scenario plays its node.
const initializing = `apiVersion: v1
kind: Pod
metadata:
  name: myapp-pod
  namespace: default
  labels: {app.kubernetes.io/name: MyApp}
spec:
  schedulerName: nobody
  initContainers:
  - {name: init-myservice, image: "busybox:1.28"}
  - {name: init-mydb, image: "busybox:1.28"}
  containers:
  - {name: myapp-container, image: "busybox:1.28"}
`

// DescribePod reads the states of containers from kubectl describe. They are part of the status, which a PATCH of the
// Pod leaves alone and a PATCH of the status changes.
//
// POD-090 POD-123 POD-217 POD-218
func DescribePod(t *testing.T, m mesh.Mesh) {
	inDefault := *In(t, m)
	inDefault.Namespace = metav1.NamespaceDefault
	w := &inDefault
	file := w.directory(map[string]string{"myapp.yaml": initializing}) + "/myapp.yaml"
	w.Kubectl("apply", "-f", file)
	defer w.Kubectl("delete", "-f", file)

	const waiting = `{"waiting":{"reason":"PodInitializing"}}`
	first := statusOf(`{"running":{"startedAt":"2026-01-01T00:00:00Z"}}`, waiting)
	w.says("pod/myapp-pod patched (no change)", "patch", "pod", "myapp-pod", "-p", first)
	if got := w.pod("myapp-pod").Status.InitContainerStatuses; len(got) != 0 {
		t.Errorf("a patch of the Pod changed its status: %v", got)
	}
	patchStatus(w, "myapp-pod", first)
	got := w.Kubectl("describe", "-f", file)
	words := strings.Join(strings.Fields(got), " ")
	for _, want := range []string{"Name: myapp-pod", "Namespace: default", "Labels: app.kubernetes.io/name=MyApp",
		"Status: Pending"} {
		if !strings.Contains(words, want) {
			t.Errorf("describe -f lacks %q:\n%s", want, got)
		}
	}
	inits, mains := strings.Index(got, "\nInit Containers:\n"), strings.Index(got, "\nContainers:\n")
	if inits < 0 || mains < inits {
		t.Errorf("the init containers are not before the others:\n%s", got)
	}
	expectStates(t, got, map[string]string{
		"init-myservice": "State: Running Started:", "init-mydb": "State: Waiting Reason: PodInitializing",
		"myapp-container": "State: Waiting Reason: PodInitializing",
	})

	patchStatus(w, "myapp-pod", statusOf(
		`{"terminated":{"exitCode":0,"reason":"Completed","startedAt":"2026-01-01T00:00:00Z","finishedAt":"2026-01-01T00:00:02Z"}}`,
		`{"running":{"startedAt":"2026-01-01T00:00:03Z"}}`,
	))
	expectStates(t, w.Kubectl("describe", "pod", "myapp-pod"), map[string]string{
		"init-myservice":  "State: Terminated Reason: Completed Exit Code: 0 Started:",
		"init-mydb":       "State: Running Started:",
		"myapp-container": "State: Waiting Reason: PodInitializing",
	})
}

// statusOf is a patch with the states of the two init containers.
func statusOf(first, second string) string {
	const status = `{"name":%q,"image":"busybox:1.28","imageID":"","ready":false,"restartCount":0,"state":%s}`
	return `{"status":{"initContainerStatuses":[` + fmt.Sprintf(status, "init-myservice", first) + "," +
		fmt.Sprintf(status, "init-mydb", second) +
		`],"containerStatuses":[` + fmt.Sprintf(status, "myapp-container", `{"waiting":{"reason":"PodInitializing"}}`) +
		`]}}`
}

// patchStatus sends a PATCH of the Pod's status.
func patchStatus(w *World, name, patch string) {
	w.Helper()
	_, err := w.Client.CoreV1().Pods(w.Namespace).Patch(w.Context(), name, types.MergePatchType, []byte(patch),
		metav1.PatchOptions{}, "status")
	if err != nil {
		w.Fatalf("patching the status of Pod %s: %v", name, err)
	}
}

// expectStates looks for the states in what kubectl describe says of each container.
func expectStates(t *testing.T, described string, want map[string]string) {
	t.Helper()
	for container, state := range want {
		_, after, found := strings.Cut(described, "\n  "+container+":\n")
		var section []string
		for line := range strings.Lines(after) {
			if !strings.HasPrefix(line, "    ") {
				break
			}
			section = append(section, strings.Fields(line)...)
		}
		if !found || !strings.Contains(strings.Join(section, " "), state) {
			t.Errorf("describe says of container %s %q, want %q", container, strings.Join(section, " "), state)
		}
	}
}

// DescribeDeployment names the ReplicaSet of the template, and the old one that was scaled to nothing and kept.
//
// DEP-045
func DescribeDeployment(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(web(2, HelloV1, ""), "apply", "-f", "-")
	w.AwaitAvailable("web", 2)
	w.Kubectl("set", "image", "deployment/web", "web="+HelloV2)
	w.AwaitAvailable("web", 2)
	w.Await("the ReplicaSets in describe", func() Answer {
		sets := w.replicaSets()
		old, current := sets[HelloV1], sets[HelloV2]
		if old == nil || current == nil {
			return Sawf("%d ReplicaSets", len(sets))
		}
		got := w.Kubectl("describe", "deployment", "web")
		want := fmt.Sprintf("OldReplicaSets: %s (0/0 replicas created) NewReplicaSet: %s (2/2 replicas created)",
			old.Name, current.Name)
		if !strings.Contains(strings.Join(strings.Fields(got), " "), want) {
			return Saw(got + "lacks " + want)
		}
		return ""
	})
}
