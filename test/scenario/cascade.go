package scenario

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/test/mesh"
)

// BackgroundCascadingDeletion deletes a Deployment as kubectl does by default: it goes at once, what it owned after it.
//
// DEP-031 DEP-167 DEP-168 SAF-022
func BackgroundCascadingDeletion(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(web(3, HelloV1, ""), "apply", "-f", "-")
	w.AwaitAvailable("web", 3)
	w.Kubectl("delete", "deployment", "web")
	w.awaitNothing("replicasets", "pods")
}

// ForegroundCascadingDeletion keeps the owner visible until its dependents are gone.
//
// DEP-169
func ForegroundCascadingDeletion(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(web(3, HelloV1, ""), "apply", "-f", "-")
	w.AwaitAvailable("web", 3)
	// A finalizer of the test's own holds one Pod back, so that the waiting can be seen.
	const hold = "test.keelson.dev/hold"
	held := w.Pods("app=web")[0].Name
	w.Kubectl("patch", "pod", held, "--type=merge", "-p", `{"metadata":{"finalizers":["`+hold+`"]}}`)
	w.Kubectl("delete", "deployment", "web", "--cascade=foreground", "--wait=false")
	w.Await("all Pods but the held one to go", func() Answer {
		if pods := w.Pods("app=web"); len(pods) != 1 {
			return Sawf("%d Pods", len(pods))
		}
		return ""
	})
	d, err := w.Client.AppsV1().Deployments(w.Namespace).Get(w.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatalf("the Deployment went before its Pod: %v", err)
	}
	if d.DeletionTimestamp == nil || strings.Join(d.Finalizers, " ") != metav1.FinalizerDeleteDependents {
		t.Errorf("while it waits: deletion %v, finalizers %v", d.DeletionTimestamp, d.Finalizers)
	}
	w.Kubectl("patch", "pod", held, "--type=json", "-p", `[{"op":"remove","path":"/metadata/finalizers"}]`)
	w.awaitNothing("pods", "replicasets", "deployments")
}

// OwnerReferenceCycle deletes objects that own each other, or themselves: each is gone in the end, and what blocks the
// circle's deletion from outside goes before the circle does.
//
// DEP-168 DEP-169
func OwnerReferenceCycle(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	t.Run("of itself, in the foreground", func(*testing.T) {
		makeOwnerRing(w, "ConfigMap", "one")
		w.Kubectl("delete", "configmap", "one", "--cascade=foreground")
	})
	t.Run("of three, in the foreground", func(*testing.T) {
		makeOwnerRing(w, "ConfigMap", "a", "b", "c")
		w.Kubectl("delete", "configmap", "b", "--cascade=foreground")
		w.awaitGone("configmap", "a", "b", "c")
	})
	t.Run("of three, in the background", func(*testing.T) {
		makeOwnerRing(w, "ConfigMap", "d", "e", "f")
		w.Kubectl("delete", "configmap", "d")
		w.awaitGone("configmap", "d", "e", "f")
	})
	for _, cascade := range []string{"foreground", "background"} {
		t.Run("of Pods, in the "+cascade, func(*testing.T) {
			names := []string{cascade + "-1", cascade + "-2", cascade + "-3"}
			makeOwnerRing(w, "Pod", names...)
			w.Kubectl("delete", "pod", names[0], "--cascade="+cascade)
			w.awaitGone("pod", names...)
		})
	}
}

// makeOwnerRing creates objects of one kind each of which owns the next, and the last the first.
func makeOwnerRing(w *World, kind string, names ...string) {
	w.Helper()
	for _, name := range names {
		manifest := "apiVersion: v1\nkind: " + kind + "\nmetadata: {name: " + name + "}\n"
		if kind == "Pod" {
			manifest += "spec: {containers: [{name: main, image: " + HelloV1 + "}]}\n"
		}
		w.KubectlWith(manifest, "create", "-f", "-")
	}
	for i, name := range names {
		owner := names[(i+len(names)-1)%len(names)]
		uid := w.Kubectl("get", kind, owner, "-o", "jsonpath={.metadata.uid}")
		reference := fmt.Sprintf(`{"apiVersion":"v1","kind":%q,"name":%q,"uid":%q,"blockOwnerDeletion":true}`, kind,
			owner, uid)
		w.Kubectl("patch", kind, name, "--type=merge", "-p", `{"metadata":{"ownerReferences":[`+reference+`]}}`)
	}
}

// OrphanCascadingDeletion lets the dependents live, and a new Deployment takes them over without replacing one.
//
// DEP-032 DEP-172
func OrphanCascadingDeletion(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(web(3, HelloV1, ""), "apply", "-f", "-")
	w.AwaitAvailable("web", 3)
	before := w.podUIDs("app=web")
	w.Kubectl("delete", "deployment", "web", "--cascade=orphan")
	w.Await("the ReplicaSet to lose its owner", func() Answer {
		sets, err := w.Client.AppsV1().ReplicaSets(w.Namespace).List(w.Context(), metav1.ListOptions{})
		if err != nil {
			return Saw(err.Error())
		}
		if len(sets.Items) != 1 || len(sets.Items[0].OwnerReferences) != 0 {
			return Sawf("%d ReplicaSets, the first owned by %v", len(sets.Items), sets.Items[0].OwnerReferences)
		}
		return ""
	})
	w.KubectlWith(web(3, HelloV1, ""), "apply", "-f", "-")
	w.AwaitAvailable("web", 3)
	if after := w.podUIDs("app=web"); after != before {
		t.Errorf("Pods were replaced:\nbefore %s\nafter  %s", before, after)
	}
}

// NamespaceDeletion empties a namespace and lets it go; one Pod that stays keeps it, with a condition that says so.
func NamespaceDeletion(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(web(2, HelloV1, ""), "apply", "-f", "-")
	w.Kubectl("create", "configmap", "settings", "--from-literal=a=b")
	w.AwaitAvailable("web", 2)
	held := w.Pods("app=web")[0].Name
	w.Kubectl("patch", "pod", held, "--type=merge", "-p", `{"metadata":{"finalizers":["test.keelson.dev/hold"]}}`)
	w.Kubectl("delete", "namespace", w.Namespace, "--wait=false")
	w.Await("a condition that names what is left", func() Answer {
		ns, err := w.Client.CoreV1().Namespaces().Get(w.Context(), w.Namespace, metav1.GetOptions{})
		if err != nil {
			return Saw(err.Error())
		}
		for _, c := range ns.Status.Conditions {
			if c.Type == "NamespaceContentRemaining" && c.Status == "True" && strings.Contains(c.Message, "pods") {
				return ""
			}
		}
		return Sawf("conditions %v", ns.Status.Conditions)
	})
	if r := w.TryKubectl("", "create", "configmap", "late"); r.Code == 0 ||
		!strings.Contains(r.Stderr, "being terminated") {
		t.Errorf("creating in a namespace that ends: status %d, %s", r.Code, r.Stderr)
	}
	w.Kubectl("patch", "pod", held, "--type=json", "-p", `[{"op":"remove","path":"/metadata/finalizers"}]`)
	w.Await("the namespace to go", func() Answer {
		_, err := w.Client.CoreV1().Namespaces().Get(w.Context(), w.Namespace, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return ""
		}
		return Sawf("error %v", err)
	})
}
