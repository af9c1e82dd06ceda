package scenario

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"keelson.dev/kit/podview"
	"keelson.dev/test/mesh"
)

// half is a Deployment of Pods of which two fill a node.
func half(name string, replicas int) string {
	return strings.NewReplacer("name: web", "name: "+name, "app: web", "app: "+name).Replace(web(replicas, HelloV1,
		"")) +
		"        resources: {requests: {cpu: 1800m}}\n"
}

// evictPod requests the eviction of the Pod with its present UID and version.
func evictPod(w *World, pod *corev1.Pod) error {
	return w.Client.PolicyV1().Evictions(w.Namespace).Evict(w.Context(), &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: pod.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID,
			ResourceVersion: &pod.ResourceVersion}},
	})
}

// activePodsByNode returns the Pods of the app that have neither ended nor are being deleted, by node.
func activePodsByNode(w *World, app string) map[string][]*corev1.Pod {
	w.Helper()
	byNode := map[string][]*corev1.Pod{}
	pods := w.Pods("app=" + app)
	for i := range pods {
		if podview.IsActive(&pods[i]) {
			byNode[pods[i].Spec.NodeName] = append(byNode[pods[i].Spec.NodeName], &pods[i])
		}
	}
	return byNode
}

func uids(pods []corev1.Pod) sets.Set[types.UID] {
	all := sets.New[types.UID]()
	for i := range pods {
		all.Insert(pods[i].UID)
	}
	return all
}

// DisruptionBudgetExample goes through the steps of the documented example: three nodes with room for two Pods
// each, three Pods under a budget that needs two, and a fourth Pod without one. The nodes are drained in turn.
//
// SAF-054 SAF-055 SAF-056 SAF-057 SAF-059 SAF-060 SAF-061 SAF-062
func DisruptionBudgetExample(t *testing.T, m mesh.Mesh) {
	w := Alone(t, m)
	w.KubectlWith(half("guarded", 3), "apply", "-f", "-")
	w.AwaitAvailable("guarded", 3)
	w.KubectlWith(half("free", 1), "apply", "-f", "-")
	w.AwaitAvailable("free", 1)
	if nodes := activePodsByNode(w, "guarded"); len(nodes) != 3 {
		t.Fatalf("the three Pods are on %d nodes", len(nodes))
	}
	w.Kubectl("create", "pdb", "guard", "--selector=app=guarded", "--min-available=2")
	awaitBudget(w, "guard 2 N/A 1")

	free := w.Pods("app=free")[0]
	first := free.Spec.NodeName
	w.Kubectl("cordon", first)
	defer func() { w.Kubectl("uncordon", first) }()
	for _, pod := range []*corev1.Pod{activePodsByNode(w, "guarded")[first][0], &free} {
		if err := evictPod(w, pod); err != nil {
			t.Errorf("SAF-056: evicting %s from the first node: %v", pod.Name, err)
		}
	}
	w.AwaitAvailable("guarded", 3)
	w.AwaitAvailable("free", 1)
	awaitBudget(w, "guard 2 N/A 1")
	full := ""
	for node, pods := range activePodsByNode(w, "guarded") {
		if node == first {
			t.Errorf("SAF-057: %s came back to the cordoned node", pods[0].Name)
		}
		if len(pods) == 2 {
			full = node
		}
	}
	if full == "" {
		t.Fatalf("no node has two Pods: %v", activePodsByNode(w, "guarded"))
	}

	w.Kubectl("cordon", full)
	defer func() { w.Kubectl("uncordon", full) }()
	two := activePodsByNode(w, "guarded")[full]
	if err := evictPod(w, two[0]); err != nil {
		t.Errorf("SAF-061: the Pod that is tried first is not evicted: %v", err)
	}
	expectEvictionRefused(w, two[1])
	w.Await("the replacement, which has no room", func() Answer {
		waiting := activePodsByNode(w, "guarded")[""]
		if len(waiting) != 1 || !strings.Contains(w.Kubectl("describe", "pod", waiting[0].Name), "Insufficient cpu") {
			return Sawf("%v Pods without a node", len(waiting))
		}
		return ""
	})
	expectEvictionRefused(w, two[1])
	w.Kubectl("uncordon", first)
	w.AwaitAvailable("guarded", 3)
	awaitBudget(w, "guard 2 N/A 1")
	if err := evictPod(w, two[1]); err != nil {
		t.Errorf("the last Pod of the node is not evicted: %v", err)
	}
	w.AwaitAvailable("guarded", 3)
}

// expectEvictionRefused expects that the budget keeps the Pod.
func expectEvictionRefused(w *World, pod *corev1.Pod) {
	w.Helper()
	if err := evictPod(w, pod); !apierrors.IsTooManyRequests(err) {
		w.Errorf("evicting %s: %v, want a refusal of the budget", pod.Name, err)
	}
}

// SequentialNodeDrains drains every node in turn, with one node to spare: at no time are fewer Pods available than the
// budget needs, and no Pod is left that was there before.
//
// SAF-076
func SequentialNodeDrains(t *testing.T, m mesh.Mesh) {
	w := Alone(t, m)
	w.KubectlWith(half("guarded", 4), "apply", "-f", "-")
	w.AwaitAvailable("guarded", 4)
	w.Kubectl("create", "pdb", "guard", "--selector=app=guarded", "--max-unavailable=1")
	awaitBudget(w, "guard N/A 1 1")
	before := uids(w.Pods("app=guarded"))
	bounds := watchPods(w, "app=guarded")
	for _, node := range m.Nodes() {
		// One that is on its way to a node while that is cordoned still comes there, as in the field. The Pods
		// themselves are counted, since the Deployment may not know yet that one has gone.
		w.Await("four Pods that are ready", func() Answer {
			ready := slices.DeleteFunc(w.Pods("app=guarded"), func(p corev1.Pod) bool {
				return !podview.IsActive(&p) || !podview.IsReady(&p)
			})
			if len(ready) != 4 {
				return Sawf("%v", len(ready))
			}
			return ""
		})
		r := w.TryKubectl("", "drain", node, "--pod-selector=app=guarded", "--timeout=60s")
		if r.Code != 0 {
			t.Errorf("draining %s: %s%s", node, r.Stdout, r.Stderr)
		}
		if left := activePodsByNode(w, "guarded")[node]; len(left) > 0 {
			t.Errorf("%d Pods are left on the drained node %s", len(left), node)
		}
		w.Kubectl("uncordon", node)
	}
	w.AwaitAvailable("guarded", 4)
	bounds.stop()
	if bounds.fewestAvailable < 3 {
		t.Errorf("at a time %d Pods were available, 3 are needed", bounds.fewestAvailable)
	}
	if both := before.Intersection(uids(w.Pods("app=guarded"))); both.Len() > 0 {
		t.Errorf("%d Pods were never evicted", both.Len())
	}
}

// RolloutIgnoresDisruptionBudget rolls out a Deployment whose budget allows nothing: the rollout does not ask it, and
// while it goes on every eviction of a Pod that serves is refused.
//
// SAF-038 SAF-039
func RolloutIgnoresDisruptionBudget(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(web(3, HelloV1, "  strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}\n"), "apply", "-f",
		"-")
	w.AwaitAvailable("web", 3)
	w.Kubectl("create", "pdb", "guard", "--selector=app=web", "--min-available=3")
	awaitBudget(w, "guard 3 N/A 0")
	stop, tried := evictServingPods(w, "app=web")
	w.Kubectl("set", "image", "deployment/web", "web="+HelloV2)
	w.AwaitAvailable("web", 3)
	stop()
	expectImages(w, HelloV2)
	if len(tried.granted) > 0 || tried.refused == 0 {
		t.Errorf("evictions during the rollout: %d refused, granted of %v", tried.refused, tried.granted)
	}
}

// evictions are what became of those that were tried.
type evictions struct {
	refused int
	granted []string
}

// evictServingPods tries to evict every Pod that is ready, again and again until stop has returned.
func evictServingPods(w *World, selector string) (stop func(), tried *evictions) {
	ctx, cancel := context.WithCancel(w.Context())
	tried = &evictions{}
	var ended sync.WaitGroup
	ended.Go(func() {
		for ; ctx.Err() == nil; time.Sleep(interval / 4) {
			list, err := w.Client.CoreV1().Pods(w.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
			if err != nil {
				continue
			}
			for i := range list.Items {
				if pod := &list.Items[i]; podview.IsActive(pod) && podview.IsReady(pod) {
					tried.note(pod.Name, evictPod(w, pod))
				}
			}
		}
	})
	return func() { cancel(); ended.Wait() }, tried
}

// note counts one eviction. A Pod that has changed meanwhile was not tried.
func (e *evictions) note(pod string, err error) {
	if err == nil {
		e.granted = append(e.granted, pod)
	} else if apierrors.IsTooManyRequests(err) {
		e.refused++
	}
}

// StatefulSetEviction evicts a Pod of a StatefulSet that takes its time to go: only when it is gone another of its name
// comes.
//
// SAF-058
func StatefulSetEviction(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(stateful(2, HelloV1, ""), "apply", "-f", "-")
	w.awaitStatefulSet(2, 2)
	const hold = "test.keelson.dev/hold"
	w.Kubectl("patch", "pod", "web-0", "--type=merge", "-p", `{"metadata":{"finalizers":["`+hold+`"]}}`)
	old := w.pod("web-0")
	if err := evictPod(w, old); err != nil {
		t.Fatal(err)
	}
	w.Await("the end of the Pod's containers", func() Answer {
		if now := w.pod("web-0"); !podview.IsTerminal(now) || now.UID != old.UID {
			return Saw(fmt.Sprint(now.UID, now.Status.Phase))
		}
		return ""
	})
	// Nothing may come of what follows, so there is nothing to wait for but a pass over the set.
	w.Kubectl("annotate", "statefulset", "web", "seen=yes")
	w.Await("a pass over the StatefulSet", func() Answer {
		if got := w.Kubectl("get", "sts", "web", "-o", "jsonpath={.status.readyReplicas}"); got != "1" {
			return Saw(got)
		}
		return ""
	})
	if pods := w.Pods("app=web"); len(pods) != 2 {
		t.Errorf("there are %d Pods", len(pods))
	}
	w.Kubectl("patch", "pod", "web-0", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	w.awaitStatefulSet(2, 2)
	if now := w.pod("web-0"); now.UID == old.UID {
		t.Error("the Pod is still there")
	}
}
