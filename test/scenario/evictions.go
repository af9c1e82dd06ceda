package scenario

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"keelson.dev/kit/podview"
	"keelson.dev/test/mesh"
)

// crowd is how many Pods are evicted at once.
const crowd = 100

// ConcurrentEvictions asks two apiservers for the eviction of every Pod of a Deployment, all at the same time, while a
// budget lets one go. However the requests meet, never fewer Pods serve than it needs, and who is refused is told so;
// when the one that went is replaced, the next goes. With a budget that lets ten go, so all go in the end.
//
// SAF-033 SAF-046 SAF-047 SAF-054
func ConcurrentEvictions(t *testing.T, m mesh.Mesh, second *rest.Config) {
	w := In(t, m)
	other, err := kubernetes.NewForConfig(second)
	if err != nil {
		t.Fatalf("building the client of the second apiserver: %v", err)
	}
	e := &exodus{World: w, servers: []kubernetes.Interface{w.Client, other}}
	w.KubectlWith(web(crowd, HelloV1, ""), "apply", "-f", "-")
	w.AwaitAvailable("web", crowd)
	for _, pod := range w.Pods("") {
		e.left = append(e.left, pod.Name)
	}
	w.Kubectl("create", "pdb", "guard", "--selector=app=web", fmt.Sprint("--min-available=", crowd-1))
	e.watch()
	for range 4 {
		e.round(1)
	}
	w.Kubectl("patch", "pdb", "guard", "--type=merge", "-p", fmt.Sprintf(`{"spec":{"minAvailable":%d}}`, crowd-10))
	for len(e.left) > 0 {
		e.round(10)
	}
}

// exodus is of Pods that are to be evicted, by requests to several apiservers.
type exodus struct {
	*World
	servers []kubernetes.Interface
	left    []string // who is to go yet

	mutex   sync.Mutex // guards what follows
	serving map[types.UID]bool
	least   int // that have served at once since the last round
}

// watch counts the Pods that serve, in the order in which they came and went, until the test ends.
func (e *exodus) watch() {
	e.Helper()
	pods := e.Client.CoreV1().Pods(e.Namespace)
	list, err := pods.List(e.Context(), metav1.ListOptions{})
	if err != nil {
		e.Fatal(err)
	}
	e.serving = map[types.UID]bool{}
	for i := range list.Items {
		e.note(&list.Items[i])
	}
	changes, err := pods.Watch(e.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		e.Fatal(err)
	}
	ended := make(chan struct{})
	e.Cleanup(func() {
		changes.Stop()
		<-ended
	})
	go func() {
		defer close(ended)
		for change := range changes.ResultChan() {
			if pod, ok := change.Object.(*corev1.Pod); ok {
				e.note(pod)
			}
		}
	}()
}

// note records the present state of a Pod; a removed one was being deleted before.
func (e *exodus) note(pod *corev1.Pod) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if podview.IsActive(pod) && podview.IsReady(pod) {
		e.serving[pod.UID] = true
	} else {
		delete(e.serving, pod.UID)
	}
	e.least = min(e.least, len(e.serving))
}

// round waits until the budget allows that many evictions and all Pods serve, and asks to evict
// the remaining ones at once.
func (e *exodus) round(allowed int) {
	e.Helper()
	awaitBudget(e.World, fmt.Sprintf("guard %d N/A %d", crowd-allowed, allowed))
	e.Await("all Pods to serve", func() Answer {
		e.mutex.Lock()
		defer e.mutex.Unlock()
		if n := len(e.serving); n != crowd {
			return Sawf("%d", n)
		}
		e.least = crowd
		return ""
	})
	refusals := make([]error, len(e.left))
	var asked sync.WaitGroup
	for i, name := range e.left {
		asked.Go(func() {
			refusals[i] = e.servers[i%len(e.servers)].PolicyV1().Evictions(e.Namespace).Evict(e.Context(),
				&policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: name}})
		})
	}
	asked.Wait()
	before := len(e.left)
	for i := before - 1; i >= 0; i-- {
		switch err := refusals[i]; {
		case err == nil:
			e.left = slices.Delete(e.left, i, i+1)
		case !apierrors.IsTooManyRequests(err) || !strings.Contains(err.Error(), "disruption budget"):
			e.Errorf("%s is refused by %v", e.left[i], err)
		}
	}
	if len(e.left) == before {
		e.Errorf("nobody of %d may go though %d were allowed to", before, allowed)
	}
	e.AwaitAvailable("web", crowd)
	e.Await("all Pods to serve again", func() Answer {
		e.mutex.Lock()
		defer e.mutex.Unlock()
		if n := len(e.serving); n != crowd {
			return Sawf("%d", n)
		}
		if e.least < crowd-allowed {
			e.Errorf("%d Pods served at the least, the budget needs %d", e.least, crowd-allowed)
		}
		return ""
	})
	e.Logf("%d of %d went, %d served at the least", before-len(e.left), before, e.least)
}
