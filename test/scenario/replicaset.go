package scenario

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/test/mesh"
	"keelson.dev/test/mesh/simnode"
)

// frontend is a ReplicaSet; its Pods have the labels of web, so that the world's helpers find them.
func frontend(replicas int, image string) string {
	return strings.NewReplacer("kind: Deployment", "kind: ReplicaSet", "  name: web\n",
		"  name: frontend\n").Replace(web(replicas, image, ""))
}

// barePod is a Pod of no controller, with the labels of web.
func barePod(name, image string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: %s, labels: {app: web}}\n"+
		"spec: {terminationGracePeriodSeconds: 1, containers: [{name: web, image: %q}]}\n", name, image)
}

// StandaloneReplicaSet scales a ReplicaSet, loses one Pod to another label and gives it a new template, which only new
// Pods get.
//
// DEP-006 DEP-035 DEP-150 DEP-153 DEP-174 DEP-175 DEP-176 POD-016 POD-040 POD-043 POD-161
func StandaloneReplicaSet(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(frontend(3, HelloV1), "apply", "-f", "-")
	w.awaitActive("app=web", 3)
	w.awaitOutput([]string{"Name:         frontend\n", "Namespace:    " + w.Namespace, "Selector:     app=web",
		"Labels:       app=web", "Annotations:  ",
		"Replicas:     3 current / 3 desired", "Pods Status:  3 Running / 0 Waiting / 0 Succeeded / 0 Failed",
		"Pod Template:", "SuccessfulCreate"},
		"describe", "rs/frontend")
	w.says("replicaset.apps/frontend scaled", "scale", "rs/frontend", "--replicas=2")
	pods := w.awaitActive("app=web", 2)

	isolated := pods[0].Name
	w.Kubectl("label", "pod", isolated, "app=debug", "--overwrite")
	pods = w.awaitActive("app=web", 2)
	w.Await("the isolated Pod to lose its owner", func() Answer {
		pod, err := w.Client.CoreV1().Pods(w.Namespace).Get(w.Context(), isolated, metav1.GetOptions{})
		if err != nil {
			return Saw(err.Error())
		}
		if owner := metav1.GetControllerOf(pod); owner != nil {
			return Sawf("owned by %s", owner.Name)
		}
		return ""
	})

	w.Kubectl("set", "image", "rs/frontend", "web="+HelloV2)
	w.Kubectl("scale", "rs", "frontend", "--replicas=3")
	images := map[string]int{}
	for _, pod := range w.awaitActive("app=web", 3) {
		images[pod.Spec.Containers[0].Image]++
		if !strings.HasPrefix(pod.Name, "frontend-") {
			t.Errorf("a Pod of ReplicaSet frontend is called %s", pod.Name)
		}
	}
	if images[HelloV1] != 2 || images[HelloV2] != 1 {
		t.Errorf("after a change of the template: %v", images)
	}

	w.Kubectl("patch", "pod", pods[0].Name, "--type=merge", "-p",
		`{"metadata":{"finalizers":["test.keelson.dev/hold"]}}`)
	w.Kubectl("delete", "pod", pods[0].Name, "--wait=false")
	w.awaitActive("app=web", 3)
	w.Await("the status not to count the terminating Pod", func() Answer {
		row := strings.Join(strings.Fields(w.Kubectl("get", "rs", "frontend", "--no-headers"))[:4], " ")
		if all := len(w.Pods("app=web")); row != "frontend 3 3 3" || all != 4 {
			return Sawf("row %s of %d Pods", row, all)
		}
		return ""
	})
	w.Kubectl("patch", "pod", pods[0].Name, "--type=json", "-p", `[{"op":"remove","path":"/metadata/finalizers"}]`)

	w.says(`replicaset.apps "frontend" deleted from `+w.Namespace+` namespace`, "delete", "rs", "frontend")
	w.Await("only the isolated Pod", func() Answer {
		if left := w.Pods(""); len(left) != 1 || left[0].Name != isolated || left[0].DeletionTimestamp != nil {
			return Sawf("%d Pods", len(left))
		}
		return ""
	})
}

// ReplicaSetAdoption adopts bare Pods, regardless of what they run, and deletes the excess ones.
//
// DEP-158 DEP-160 DEP-161 DEP-162 DEP-163
func ReplicaSetAdoption(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	pods := barePod("pod1", HelloV2) + "---\n" + barePod("pod2", Server)
	if got := w.KubectlWith(pods, "apply", "-f", "-"); got != "pod/pod1 created\npod/pod2 created\n" {
		t.Errorf("apply of two Pods printed %q", got)
	}
	w.awaitActive("app=web", 2)
	w.KubectlWith(frontend(3, HelloV1), "apply", "-f", "-")
	var names, images []string
	for _, pod := range w.awaitActive("app=web", 3) {
		names, images = append(names, pod.Name), append(images, pod.Spec.Containers[0].Image)
		if owner := metav1.GetControllerOf(&pod); owner == nil || owner.Name != "frontend" {
			t.Errorf("Pod %s is owned by %v", pod.Name, owner)
		}
	}
	slices.Sort(names)
	slices.Sort(images)
	if strings.Join(names[1:], " ") != "pod1 pod2" ||
		!slices.Equal(images, slices.Sorted(slices.Values([]string{HelloV1, HelloV2, Server}))) {
		t.Errorf("the ReplicaSet owns %v of %v", names, images)
	}

	// It never gets ready: among Pods that are ready and about equally old, chance decides which one goes.
	w.KubectlWith(barePod("late", simnode.NeverReady), "apply", "-f", "-")
	w.Await("the Pod above the count to be ended", func() Answer {
		r := w.TryKubectl("", "get", "pod", "late", "-o", "jsonpath={.metadata.deletionTimestamp}")
		if r.Stdout != "" || strings.Contains(r.Stderr, "NotFound") {
			return ""
		}
		return "it lives"
	})
	var after []string
	for _, pod := range w.awaitActive("app=web", 3) {
		after = append(after, pod.Name)
	}
	slices.Sort(after)
	if !slices.Equal(after, names) {
		t.Errorf("the three that were there are %v, now %v", names, after)
	}
}

// ReplicaSetDeletion deletes a ReplicaSet alone, lets another of its selector take the Pods over, and deletes that one
// with its Pods, in each way.
//
// DEP-167 DEP-172 DEP-173 POD-017
func ReplicaSetDeletion(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(frontend(2, HelloV1), "apply", "-f", "-")
	w.awaitActive("app=web", 2)
	before := w.podUIDs("app=web")
	w.Kubectl("delete", "rs", "frontend", "--cascade=orphan")
	w.Await("Pods without an owner", func() Answer {
		for _, pod := range w.Pods("app=web") {
			if len(pod.OwnerReferences) != 0 {
				return Sawf("%s has one", pod.Name)
			}
		}
		return ""
	})
	w.KubectlWith(strings.Replace(frontend(2, HelloV2), "  name: frontend\n", "  name: heir\n", 1), "apply", "-f", "-")
	w.Await("the heir to own both", func() Answer {
		for _, pod := range w.Pods("app=web") {
			if owner := metav1.GetControllerOf(&pod); owner == nil || owner.Name != "heir" {
				return Sawf("Pod %s is owned by %v", pod.Name, owner)
			}
		}
		return ""
	})
	if after := w.podUIDs("app=web"); after != before {
		t.Errorf("Pods were replaced: before %s, after %s", before, after)
	}
	w.Kubectl("delete", "rs", "heir", "--cascade=foreground")
	w.awaitNothing("pods", "replicasets")
}
