package scenario

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/test/mesh"
)

// nginx is a ReplicationController of Pods that say of which track they are. It says neither labels nor a selector.
func nginx(name, track, image string, replicas int) string {
	return fmt.Sprintf(`apiVersion: v1
kind: ReplicationController
metadata: {name: %s}
spec:
  replicas: %d
  template:
    metadata: {labels: {app: nginx, track: %s}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: nginx, image: %q, ports: [{containerPort: 80}]}]
`, name, replicas, track, image)
}

// StandaloneReplicationController makes Pods, shows them, loses one to another label, gets a new template, which
// replaces none, and is scaled.
//
// DEP-187 DEP-188 DEP-189 DEP-190 DEP-191 DEP-193 DEP-194 DEP-202 DEP-203 DEP-208
func StandaloneReplicationController(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	if got := w.KubectlWith(nginx("nginx", "a", HelloV1, 3), "apply", "-f", "-"); got !=
		"replicationcontroller/nginx created\n" {
		t.Errorf("apply printed %q", got)
	}
	w.awaitActive("app=nginx", 3)
	names := w.Kubectl("get", "pods", "--selector=app=nginx", "--output=jsonpath={.items..metadata.name}")
	for _, name := range append(strings.Split(names, " "), names) {
		if !strings.HasPrefix(name, "nginx-") || len(strings.Fields(names)) != 3 {
			t.Errorf("the Pods are called %q", names)
		}
	}
	w.awaitOutput([]string{"Name:         nginx\n", "Namespace:    " + w.Namespace, "Selector:     app=nginx,track=a",
		"Labels:       app=nginx", "Replicas:     3 current / 3 desired",
		"Pods Status:  3 Running / 0 Waiting / 0 Succeeded / 0 Failed", "Pod Template:",
		"SuccessfulCreate", "replication-controller", "Created pod: nginx-"}, "describe",
		"replicationcontrollers/nginx")
	w.says("replicationcontroller/nginx scaled", "scale", "rc", "nginx", "--replicas=2")
	pods := w.awaitActive("app=nginx", 2)

	w.Kubectl("label", "pod", pods[0].Name, "app=debug", "--overwrite")
	kept := pods[1].Name
	w.awaitActive("app=nginx", 2)
	w.Kubectl("set", "image", "rc/nginx", "nginx="+HelloV2)
	w.Kubectl("scale", "rc", "nginx", "--replicas=3")
	images := map[string]int{}
	for _, pod := range w.awaitActive("app=nginx", 3) {
		images[pod.Spec.Containers[0].Image]++
		if pod.Name == kept && pod.Spec.Containers[0].Image != HelloV1 {
			t.Errorf("Pod %s has got another image", kept)
		}
	}
	if images[HelloV1] != 2 || images[HelloV2] != 1 {
		t.Errorf("after a change of the template: %v", images)
	}
	w.Kubectl("delete", "pod", kept)
	w.awaitActive("app=nginx", 3)
	w.Await("its line", func() Answer {
		row := strings.Fields(w.Kubectl("get", "rc", "nginx", "--no-headers"))
		if got := strings.Join(row[:4], " "); got != "nginx 3 3 3" {
			return Saw(got)
		}
		return ""
	})
}

// ReplicationControllerDeletion deletes a ReplicationController alone, as a plain DELETE does, lets another take the
// Pods over, moves them step by step to a third, and deletes that one with its Pods.
//
// DEP-196 DEP-198 DEP-199 DEP-200 DEP-201 DEP-204 DEP-205
func ReplicationControllerDeletion(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(nginx("first", "a", HelloV1, 2), "apply", "-f", "-")
	w.awaitActive("app=nginx", 2)
	owned := func(by string) func() Answer {
		return func() Answer {
			for _, pod := range w.Pods("app=nginx") {
				if owner := metav1.GetControllerOf(&pod); owner == nil && by != "" || owner != nil && owner.Name != by {
					return Sawf("Pod %s is owned by %v", pod.Name, owner)
				}
			}
			return ""
		}
	}
	before := w.podUIDs("app=nginx")
	controllers := w.Client.CoreV1().ReplicationControllers(w.Namespace)
	if err := controllers.Delete(w.Context(), "first", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.Await("Pods without an owner", owned(""))
	w.KubectlWith(nginx("second", "a", HelloV2, 2), "apply", "-f", "-")
	w.Await("the second to own both", owned("second"))
	if after := w.podUIDs("app=nginx"); after != before {
		t.Errorf("Pods were replaced: before %s, after %s", before, after)
	}

	w.KubectlWith(nginx("third", "b", HelloV2, 1), "apply", "-f", "-")
	w.awaitActive("track=b", 1)
	w.awaitActive("track=a", 2)
	w.awaitActive("app in (nginx),track in (a,b)", 3)
	for left := 1; left >= 0; left-- {
		w.Kubectl("scale", "rc", "second", fmt.Sprint("--replicas=", left))
		w.awaitActive("track=a", left)
		w.Kubectl("scale", "rc", "third", fmt.Sprint("--replicas=", 2))
		w.awaitActive("track=b", 2)
	}
	w.Kubectl("delete", "rc", "second")
	w.awaitActive("app=nginx", 2)
	w.says(`replicationcontroller "third" deleted from `+w.Namespace+` namespace`, "delete", "rc", "third")
	w.awaitNothing("pods", "replicationcontrollers")
}
