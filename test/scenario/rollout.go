package scenario

import (
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"keelson.dev/kit/podview"
	"keelson.dev/test/mesh"
)

// DeploymentRollout applies a Deployment, scales it, changes its image and goes back, as a user does with kubectl.
//
// DEP-021 DEP-022 DEP-024 DEP-033 POD-009 POD-043
func DeploymentRollout(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(web(3, HelloV1, ""), "apply", "-f", "-")
	if got := w.Kubectl("rollout", "status", "deployment/web", "--timeout=90s"); !strings.Contains(got,
		`deployment "web" successfully rolled out`) {
		t.Errorf("rollout status: %s", got)
	}
	if got := strings.Fields(w.Kubectl("get", "deployment", "web", "--no-headers")); len(got) < 4 ||
		strings.Join(got[:4], " ") != "web 3/3 3 3" {
		t.Errorf("get deployment: %v", got)
	}
	for _, pod := range w.Pods("app=web") {
		hash := pod.Labels["pod-template-hash"]
		if !strings.HasPrefix(pod.Name, "web-"+hash+"-") || len(pod.Name) != len("web-"+hash+"-")+5 {
			t.Errorf("Pod name %s with hash %s", pod.Name, hash)
		}
	}

	w.Kubectl("scale", "deployment/web", "--replicas=10")
	w.AwaitAvailable("web", 10)
	if got := len(w.Pods("app=web")); got != 10 {
		t.Errorf("%d Pods after scaling to 10", got)
	}

	w.Kubectl("set", "image", "deployment/web", "web="+HelloV2)
	w.AwaitAvailable("web", 10)
	expectImages(w, HelloV2)

	w.Kubectl("rollout", "undo", "deployment/web")
	w.AwaitAvailable("web", 10)
	expectImages(w, HelloV1)
}

func expectImages(w *World, image string) {
	w.Helper()
	w.Await("only Pods of "+image, func() Answer {
		for _, pod := range w.Pods("app=web") {
			if pod.Spec.Containers[0].Image != image {
				return Sawf("Pod %s has %s", pod.Name, pod.Spec.Containers[0].Image)
			}
		}
		return ""
	})
}

// RollingUpdateBounds watches every Pod during an update with the default strategy: never more than 125 % that are not
// on their way out (rounded up), never fewer than 75 % that are available (rounded up).
//
// DEP-049 DEP-050 DEP-052
func RollingUpdateBounds(t *testing.T, m mesh.Mesh) {
	const replicas, surge, unavailable = 10, 3, 2
	w := In(t, m)
	w.KubectlWith(web(replicas, HelloV1, ""), "apply", "-f", "-")
	w.AwaitAvailable("web", replicas)

	bounds := watchPods(w, "app=web")
	w.Kubectl("set", "image", "deployment/web", "web="+HelloV2)
	w.AwaitAvailable("web", replicas)
	bounds.stop()
	if bounds.most > replicas+surge || bounds.fewestAvailable < replicas-unavailable {
		t.Errorf("at most %d Pods and at least %d available were seen; allowed are %d and %d",
			bounds.most, bounds.fewestAvailable, replicas+surge, replicas-unavailable)
	}
	if bounds.events < 2*replicas {
		t.Errorf("the watcher saw %d events of an update of %d Pods", bounds.events, replicas)
	}
}

// podBounds are the extremes of what a watcher saw.
type podBounds struct {
	watcher watch.Interface
	ended   sync.WaitGroup

	pods                          map[types.UID]*corev1.Pod
	most, fewestAvailable, events int
}

// watchPods follows the Pods from now on until stop.
func watchPods(w *World, selector string) *podBounds {
	w.Helper()
	list, err := w.Client.CoreV1().Pods(w.Namespace).List(w.Context(), metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		w.Fatalf("listing Pods: %v", err)
	}
	b := &podBounds{pods: map[types.UID]*corev1.Pod{}}
	for i := range list.Items {
		b.pods[list.Items[i].UID] = &list.Items[i]
	}
	b.fewestAvailable = b.available()
	b.watcher, err = w.Client.CoreV1().Pods(w.Namespace).Watch(w.Context(), metav1.ListOptions{LabelSelector: selector,
		ResourceVersion: list.ResourceVersion})
	if err != nil {
		w.Fatalf("watching Pods: %v", err)
	}
	b.ended.Go(func() {
		for event := range b.watcher.ResultChan() {
			b.see(event)
		}
	})
	return b
}

func (b *podBounds) see(event watch.Event) {
	pod, ok := event.Object.(*corev1.Pod)
	if !ok {
		return
	}
	b.events++
	if event.Type == watch.Deleted {
		delete(b.pods, pod.UID)
	} else {
		b.pods[pod.UID] = pod
	}
	active := 0
	for _, p := range b.pods {
		if podview.IsActive(p) {
			active++
		}
	}
	b.most = max(b.most, active)
	b.fewestAvailable = min(b.fewestAvailable, b.available())
}

func (b *podBounds) available() int {
	n := 0
	for _, p := range b.pods {
		if podview.IsActive(p) && podview.IsReady(p) {
			n++
		}
	}
	return n
}

func (b *podBounds) stop() {
	b.watcher.Stop()
	b.ended.Wait()
}
