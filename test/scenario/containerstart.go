package scenario

import (
	"io"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/test/mesh"
)

// hooked is a Pod whose container is made ready from outside: its postStart hook waits for a file.
const hooked = `apiVersion: v1
kind: Pod
metadata: {name: hooked}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: ` + Server + `
    lifecycle: {postStart: {exec: {command: [sh, -c, "until [ -f /tmp/go ]; do sleep 0.1; done"]}}}
`

// PostStartHook goes into a container while its postStart hook runs, for which the API shows none that runs yet, and
// attaches to one that was added a moment ago.
//
// POD-086, SAF-017
func PostStartHook(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(hooked, "apply", "-f", "-")
	w.Await("a process beside the hook", func() Answer {
		return Left(w.TryKubectl("", "exec", "hooked", "--", "touch", "/tmp/go").Stderr)
	})
	w.Kubectl("wait", "--for=condition=Ready", "pod/hooked", "--timeout=60s")
	for _, name := range []string{"one", "two", "three"} {
		talkTo(w, name)
	}
}

// talkTo adds a container to the Pod hooked that repeats what it hears, and says something to it.
func talkTo(w *World, name string) {
	w.Helper()
	command := w.kubectl("debug", "hooked", "--quiet", "--image="+Server, "--container="+name,
		"--image-pull-policy=Never", "--profile=general", "--stdin", "--", "cat")
	in, err := command.StdinPipe()
	if err != nil {
		w.Fatal(err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		w.Fatal(err)
	}
	if err := command.Start(); err != nil {
		w.Fatal(err)
	}
	if _, err := io.WriteString(in, "heard by "+name+"\n"); err != nil {
		w.Fatal(err)
	}
	// A client that disconnects before the answer gets none: the container's input stays open for others.
	newLines(out).await(w, "heard by "+name)
	in.Close()
	if err := command.Wait(); err != nil {
		w.Errorf("talking to container %s: %v", name, err)
	}
}

// DeletionBeforeContainerStart ends Pods whose containers never ran, of which nothing is said how these ended, and
// makes some that wait for claims that are not there.
//
// POD-078, JOB-091
func DeletionBeforeContainerStart(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	const containers = "      containers:"
	initialized := job("initialized", "", "backoffLimit: 3",
		"podFailurePolicy: {rules: [{action: FailJob, onExitCodes: {operator: In, values: [137]}}]}")
	w.KubectlWith(strings.Replace(initialized, containers, "      initContainers: [{name: prepare, image: "+Server+
		", args: [-http=, -term-exit-code=7]}]\n"+containers, 1), "apply", "-f", "-")
	began := func(pod *corev1.Pod) bool {
		all := pod.Status.InitContainerStatuses
		return len(all) > 0 && all[0].State.Running != nil
	}
	w.Await("a Pod that is being initialized", onePod(w, "of=initialized", began))
	first := w.Pods("of=initialized")[0]
	last := deletePod(w, first.Name)
	if s := last.Status.ContainerStatuses; len(s) != 1 || s[0].State.Waiting == nil {
		t.Errorf("the container that never ran: %+v", s)
	}
	w.says("", "get", "job", "initialized", "-o", "jsonpath={.status.conditions[?(@.type=='FailureTarget')].type}")

	w.KubectlWith(`apiVersion: v1
kind: Pod
metadata: {name: elsewhere}
spec:
  nodeName: `+w.Mesh.Nodes()[0]+`
  nodeSelector: {no: where}
  containers: [{name: main, image: `+Server+`}]
---
apiVersion: v1
kind: Pod
metadata: {name: late}
spec:
  activeDeadlineSeconds: 1
  containers: [{name: main, image: keelson.dev/nowhere:1, imagePullPolicy: Never}]
---
apiVersion: v1
kind: Pod
metadata: {name: claiming}
spec:
  resourceClaims: [{name: gpu, resourceClaimName: gpu}]
  containers: [{name: main, image: `+Server+`, resources: {claims: [{name: gpu}]}}]
---
apiVersion: v1
kind: Pod
metadata: {name: bound}
spec:
  nodeName: `+w.Mesh.Nodes()[0]+`
  resourceClaims: [{name: gpu, resourceClaimName: gpu}]
  containers: [{name: main, image: `+Server+`}]
`, "apply", "-f", "-")
	w.awaitOutput([]string{"NodeAffinity"}, "get", "pod", "elsewhere")
	w.awaitOutput([]string{"DeadlineExceeded"}, "get", "pod", "late")
	const none = "ResourceClaim gpu does not exist"
	w.awaitOutput([]string{"FailedScheduling", none}, "describe", "pod", "claiming")
	w.awaitOutput([]string{"FailedPrepareDynamicResources", none}, "describe", "pod", "bound")
}

// onePod returns a look at whether there is a Pod as it should be, and no other.
func onePod(w *World, selector string, as func(*corev1.Pod) bool) func() Answer {
	return func() Answer {
		pods := w.Pods(selector)
		if len(pods) != 1 || !as(&pods[0]) {
			return Sawf("%d Pods are not yet", len(pods))
		}
		return ""
	}
}
