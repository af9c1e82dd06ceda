package scenario

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// web is the Deployment that most scenarios use.
func web(replicas int, image, extra string) string {
	manifest := fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels: {app: web}
spec:
  replicas: %d
  selector:
    matchLabels: {app: web}
  template:
    metadata:
      labels: {app: web}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: web
        image: %s
`, replicas, image)
	if extra == "" {
		return manifest
	}
	return strings.Replace(manifest, "spec:\n", "spec:\n"+extra, 1)
}

// Deploy brings the world's Deployment to that size and image and waits until it has exactly these Pods; no image
// deletes it and waits until nothing of it is left.
func (w *World) Deploy(replicas int32, image string) {
	w.Helper()
	w.Await("kubectl to be heard", func() Answer { return Left(w.TryDeploy(replicas, image)) })
	if image == "" {
		w.awaitNothing("deployments", "replicasets", "pods")
		return
	}
	w.AwaitAvailable("web", replicas)
	expectImages(w, image)
	w.Await("exactly the Pods asked for", func() Answer {
		if pods := w.Pods("app=web"); len(pods) != int(replicas) {
			return Sawf("%d Pods", len(pods))
		}
		return ""
	})
}

// TryDeploy asks once and returns what kubectl complained of.
func (w *World) TryDeploy(replicas int32, image string) string {
	w.Helper()
	if image == "" {
		return w.TryKubectl("", "delete", "deployment", "web", "--ignore-not-found", "--wait=false").Complaint()
	}
	return w.TryKubectl(web(int(replicas), image, ""), "apply", "-f", "-").Complaint()
}

// AwaitAvailable waits until the Deployment's rollout is complete with that many Pods.
func (w *World) AwaitAvailable(name string, replicas int32) {
	w.Helper()
	w.Await(fmt.Sprintf("%d available Pods of Deployment %s", replicas, name), func() Answer {
		d, err := w.Client.AppsV1().Deployments(w.Namespace).Get(w.Context(), name, metav1.GetOptions{})
		if err != nil {
			return Saw(err.Error())
		}
		s := d.Status
		if s.ObservedGeneration < d.Generation {
			return Sawf("generation %d of %d was observed", s.ObservedGeneration, d.Generation)
		}
		if s.Replicas != replicas || s.UpdatedReplicas != replicas || s.AvailableReplicas != replicas {
			return Sawf("%d Pods, %d updated, %d available", s.Replicas, s.UpdatedReplicas, s.AvailableReplicas)
		}
		return ""
	})
}

// deployment reads the Deployment of that name.
func (w *World) deployment(name string) *appsv1.Deployment {
	w.Helper()
	var found *appsv1.Deployment
	w.Await("Deployment "+name, func() Answer {
		var err error
		if found, err = w.Client.AppsV1().Deployments(w.Namespace).Get(w.Context(), name,
			metav1.GetOptions{}); err != nil {
			return Saw(err.Error())
		}
		return ""
	})
	return found
}

// replicaSets returns the namespace's ReplicaSets by the image of their first container.
func (w *World) replicaSets() map[string]*appsv1.ReplicaSet {
	w.Helper()
	sets := map[string]*appsv1.ReplicaSet{}
	w.Await("the ReplicaSets", func() Answer {
		list, err := w.Client.AppsV1().ReplicaSets(w.Namespace).List(w.Context(), metav1.ListOptions{})
		if err != nil {
			return Saw(err.Error())
		}
		for i := range list.Items {
			sets[list.Items[i].Spec.Template.Spec.Containers[0].Image] = &list.Items[i]
		}
		return ""
	})
	return sets
}
