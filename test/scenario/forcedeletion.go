package scenario

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/test/mesh"
	"keelson.dev/test/mesh/simnode"
)

// ForceDeletion ends a Pod whose node is cut off. Without --force kubectl only shortens the grace period and waits;
// with it kubectl warns of what may follow and does not wait, and the name is free again.
//
// POD-173 SAF-149 SAF-150 SAF-151 SAF-193
func ForceDeletion(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	pod := podOn(makeSilentNode(w))
	w.KubectlWith(pod, "apply", "-f", "-")
	before := w.pod("stray")
	w.refuses("", []string{"timed out waiting for the condition"}, "delete", "pod", "stray", "--grace-period=0",
		"--timeout=2s")
	if p := w.pod("stray"); p.UID != before.UID || p.DeletionGracePeriodSeconds == nil ||
		*p.DeletionGracePeriodSeconds != 1 {
		t.Errorf("without --force the Pod has a grace period of %v, want 1 s", p.DeletionGracePeriodSeconds)
	}
	forceDelete(w, "stray")
	if got := w.KubectlWith(pod, "create", "-f", "-"); got != "pod/stray created\n" {
		t.Errorf("making a Pod of the same name printed %q", got)
	}
	if after := w.pod("stray"); after.UID == before.UID || after.DeletionTimestamp != nil {
		t.Errorf("the new Pod has uid %s, deletion %v", after.UID, after.DeletionTimestamp)
	}
	forceDelete(w, "stray")
}

// ForceDeletionOfStatefulSetPod deletes a StatefulSet's Pod on a node that is cut off: no other one of its identity is
// made until the deletion is forced.
//
// POD-176 SET-066
func ForceDeletionOfStatefulSetPod(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	journal := journalPods(w)
	w.KubectlWith(strings.Replace(stateful(1, HelloV1, ""), "      containers:", "      nodeName: "+makeSilentNode(w)+
		"\n      containers:", 1), "apply", "-f", "-")
	journal.expect(w, "made web-0")
	before := w.pod("web-0").UID
	w.Kubectl("delete", "pod", "web-0", "--wait=false")
	journal.expect(w, "ending web-0")
	w.Kubectl("patch", "statefulset", "web", "--patch", `{"spec":{"minReadySeconds":1}}`)
	w.Await("the set to have seen that", func() Answer {
		return Left(strings.Trim(w.Kubectl("get", "statefulset", "web",
			"--output=go-template={{if ne .metadata.generation .status.observedGeneration}}not yet{{end}}"), "\n"))
	})
	if p := w.pod("web-0"); p.UID != before || p.DeletionTimestamp == nil {
		t.Errorf("the Pod was replaced before its node has ended it")
	}
	w.Kubectl("delete", "pod", "web-0", "--grace-period=0", "--force", "--wait=false")
	journal.expect(w, "gone web-0, made web-0")
	w.Kubectl("delete", "statefulset", "web")
	w.Await("the other Pod to be asked to end", func() Answer {
		if p := w.pod("web-0"); p.UID == before || p.DeletionTimestamp == nil {
			return Sawf("uid %s, deleted %v", p.UID, p.DeletionTimestamp)
		}
		return ""
	})
	forceDelete(w, "web-0")
}

// NamespaceDeletionOnLostNode deletes a namespace with a Pod on a node that is cut off: it waits, for nothing in the
// control plane forces the Pod, until an administrator does.
//
// SAF-155 SAF-156
func NamespaceDeletionOnLostNode(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(podOn(makeSilentNode(w)), "apply", "-f", "-")
	w.Kubectl("delete", "namespace", w.Namespace, "--wait=false")
	w.Await("the namespace to say that it waits for the Pod", func() Answer {
		ns, err := w.Client.CoreV1().Namespaces().Get(w.Context(), w.Namespace, metav1.GetOptions{})
		if err != nil {
			return Saw(err.Error())
		}
		for _, c := range ns.Status.Conditions {
			if c.Type == corev1.NamespaceContentRemaining &&
				strings.Contains(c.Message, "pods has 1 resource instances") {
				return ""
			}
		}
		return Sawf("conditions %v", ns.Status.Conditions)
	})
	if p := w.pod("stray"); p.DeletionTimestamp == nil || *p.DeletionGracePeriodSeconds != 30 {
		t.Errorf("the Pod is deleted at %v within %v s, want its own 30 s", p.DeletionTimestamp,
			p.DeletionGracePeriodSeconds)
	}
	forceDelete(w, "stray")
	w.Await("the namespace to go", func() Answer {
		_, err := w.Client.CoreV1().Namespaces().Get(w.Context(), w.Namespace, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return ""
		}
		return Sawf("error %v", err)
	})
}

// makeSilentNode makes a Node that has no agent and that the scheduler skips: what was bound there never ends by
// itself.
func makeSilentNode(w *World) string {
	w.Helper()
	node := simnode.Node("silent-" + w.Namespace)
	node.Spec.Unschedulable = true
	nodes := w.Client.CoreV1().Nodes()
	if _, err := nodes.Create(w.Context(), node, metav1.CreateOptions{}); err != nil {
		w.Fatalf("making node %s: %v", node.Name, err)
	}
	w.Cleanup(func() { _ = nodes.Delete(context.Background(), node.Name, metav1.DeleteOptions{}) })
	return node.Name
}

// podOn is a Pod "stray" on the node, with the usual grace period.
func podOn(node string) string {
	return strings.Replace(barePod("stray", HelloV1), "terminationGracePeriodSeconds: 1", "nodeName: "+node, 1)
}

// forceDelete ends the Pod at once, without waiting, and expects the warning.
func forceDelete(w *World, name string) {
	w.Helper()
	r := w.TryKubectl("", "delete", "pod", name, "--grace-period=0", "--force", "--wait=false")
	if want := fmt.Sprintf("pod %q force deleted from %s namespace\n", name, w.Namespace); r.Code != 0 ||
		r.Stdout != want {
		w.Errorf("the forced deletion: status %d, %q, want %q", r.Code, r.Stdout, want)
	}
	const warning = "Warning: Immediate deletion does not wait for confirmation that the running resource has been " +
		"terminated. The resource may continue to run on the cluster indefinitely."
	if !strings.Contains(r.Stderr, warning) {
		w.Errorf("the forced deletion warned of %q, want %q", r.Stderr, warning)
	}
	if got := w.TryKubectl("", "get", "pod", name); !strings.Contains(got.Stderr, "NotFound") {
		w.Errorf("after the forced deletion: %s%s", got.Stdout, got.Stderr)
	}
}
