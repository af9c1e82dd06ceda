package scenario

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/test/mesh"
)

// DebugNode looks at a node from a Pod that kubectl debug makes there: it sees the node's processes, its network
// and its files, regardless of the node's taints.
func DebugNode(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	node := m.Nodes()[0]
	r := w.TryKubectl("", "debug", "node/"+node, "--image="+Server, "--image-pull-policy=Never", "--", "sh", "-c",
		"stat -c %n /host/proc/1 /host/etc; ps; hostname")
	const greeting = "Creating debugging pod "
	name, _, found := strings.Cut(strings.TrimPrefix(r.Stderr+r.Stdout, greeting), " with container debugger on node ")
	if r.Code != 0 || !found || !strings.HasPrefix(name, "node-debugger-"+node+"-") {
		t.Fatalf("debug of the node: status %d, %s%s", r.Code, r.Stdout, r.Stderr)
	}
	w.Kubectl("wait", "pod/"+name, "--for=jsonpath={.status.phase}=Succeeded", "--timeout=90s")
	lines := strings.Split(strings.TrimSpace(w.Kubectl("logs", name)), "\n")
	for _, want := range []string{"/host/proc/1", "/host/etc"} {
		if !slices.Contains(lines, want) {
			t.Errorf("the debugger sees no %s: %q", want, lines)
		}
	}
	if !slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, "keelson-nodeagent ") }) {
		t.Errorf("the debugger does not see the process of the nodeagent: %q", lines)
	}
	pod := w.pod(name)
	if !pod.Spec.HostNetwork || pod.Status.PodIP != pod.Status.HostIP || pod.Spec.NodeName != node {
		t.Errorf("the debugger is on %s with the address %s, and the node has %s", pod.Spec.NodeName, pod.Status.PodIP,
			pod.Status.HostIP)
	}
	w.refuses("", []string{`nodes "nowhere" not found`}, "debug", "node/nowhere", "--image="+Server, "--", "true")
}

// DebugPod looks into a Pod that runs: by a container that is added to it and sees the processes of another, and by a
// copy of the Pod with another image.
func DebugPod(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(barePod("sick", HelloV1), "apply", "-f", "-")
	w.Kubectl("wait", "pod/sick", "--for=condition=Ready", "--timeout=90s")
	before := w.pod("sick").Status.ContainerStatuses[0].ContainerID
	w.Kubectl("debug", "sick", "--image="+Server, "--container=look", "--target=web", "--", "sh", "-c",
		"ps; cat /proc/1/root/etc/hostname; exit 3")
	w.Kubectl("wait", "pod/sick", "--timeout=90s",
		"--for=jsonpath={.status.ephemeralContainerStatuses[0].state.terminated.exitCode}=3")
	if got := w.Kubectl("logs", "sick", "-c", "look"); !strings.Contains(got, "\n1 /bin/testserver serve") ||
		!strings.HasSuffix(got, "\nsick\n") {
		t.Errorf("beside container web one sees\n%s", got)
	}
	w.awaitOutput([]string{"Ephemeral Containers:\n  look:", "Exit Code:    3"}, "describe", "pod", "sick")
	w.refuses("", []string{`existing ephemeral containers "look" may not be changed`}, "debug", "sick",
		"--image="+HelloV2, "--container=look", "--", "true")
	w.refuses("", []string{`Duplicate value: "web"`}, "debug", "sick", "--image="+Server, "--container=web", "--",
		"true")
	if after := w.pod("sick").Status.ContainerStatuses[0]; after.ContainerID != before || after.RestartCount != 0 {
		t.Errorf("the container that was looked at is now %s, of %d restarts", after.ContainerID, after.RestartCount)
	}

	w.Kubectl("debug", "sick", "--copy-to=copy", "--same-node", "--share-processes", "--set-image=web="+HelloV2,
		"--image="+Server, "--container=beside", "--", "sleep", "1000")
	w.Kubectl("wait", "pod/copy", "--for=condition=Ready", "--timeout=90s")
	w.says(HelloV2+" "+Server, "get", "pod", "copy", "-o", "jsonpath={.spec.containers[*].image}")
	if got := w.Kubectl("exec", "copy", "-c", "beside", "--", "ps"); !strings.Contains(got, "/bin/testserver serve") ||
		!strings.Contains(got, "sleep 1000") {
		t.Errorf("the copy's containers do not share processes:\n%s", got)
	}
	if copied := w.pod("copy"); len(copied.Labels) > 0 || metav1.GetControllerOf(copied) != nil ||
		copied.Spec.NodeName != w.pod("sick").Spec.NodeName {
		t.Errorf("the copy is on %s, with the labels %v and owners %v", copied.Spec.NodeName, copied.Labels,
			copied.OwnerReferences)
	}
	// Its sleeping container does not hear of its end.
	w.Kubectl("delete", "pod", "copy", "--grace-period=1", "--wait=false")
}
