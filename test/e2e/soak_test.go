package e2e

import (
	"context"
	"flag"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/podview"
	"keelson.dev/test/mesh/processes"
	"keelson.dev/test/scenario"
)

var soak = flag.Duration("soak", 0, "how long TestSoak makes and deletes Pods; it is left out without")

const (
	// crowd is how many Pods TestSoak makes and deletes at a time.
	crowd = 100
	// crowdPatience bounds the wait for all of them.
	crowdPatience = 10 * time.Minute
)

// TestSoak makes a hundred Pods on one node and deletes them, again and again. Afterwards the daemons, the runtime and
// the kernel hold no more than after the first hundred.
//
// SAF-167
func TestSoak(t *testing.T) {
	if *soak == 0 {
		t.Skip("make soak runs this: it takes minutes")
	}
	m := processes.New(t, 1)
	w := scenario.In(t, m)
	crowdComesAndGoes(w) // things that are made once exist afterwards
	before := settledFootprint(w, m)
	rounds := 0
	for end := time.Now().Add(*soak); rounds == 0 || time.Now().Before(end); rounds++ {
		crowdComesAndGoes(w)
	}
	after := awaitFootprint(w, m, before, 3*time.Minute)
	t.Logf("%d rounds; what there was, and what there is:\n%v\n%v", rounds, before, after)
	if grown := after.grown(before); grown != "" {
		t.Errorf("after %d rounds of %d Pods there is more of %s", rounds, crowd, grown)
	}
}

// settledFootprint reads the footprint until nothing of it goes any more: the runtime takes its files away later.
func settledFootprint(w *scenario.World, m *processes.Mesh) footprint {
	w.Helper()
	last := readFootprint(w, m)
	for range 12 {
		<-time.After(10 * time.Second)
		now := readFootprint(w, m)
		if last.grown(now) == "" {
			return now
		}
		last = now
	}
	return last
}

// awaitFootprint reads the footprint until there is no more of anything than before, or the time is over: what a Pod
// had may go a moment after it.
func awaitFootprint(w *scenario.World, m *processes.Mesh, before footprint, atMost time.Duration) footprint {
	w.Helper()
	for deadline := time.Now().Add(atMost); ; <-time.After(5 * time.Second) {
		now := readFootprint(w, m)
		if now.grown(before) == "" || time.Now().After(deadline) {
			return now
		}
	}
}

// crowdComesAndGoes makes the Pods, waits until all are ready, deletes them and waits until all are gone.
func crowdComesAndGoes(w *scenario.World) {
	w.Helper()
	pods := w.Client.CoreV1().Pods(w.Namespace)
	var all errgroup.Group
	for i := range crowd {
		all.Go(func() error {
			_, err := pods.Create(w.Context(), &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("pod-", i)},
				Spec: corev1.PodSpec{TerminationGracePeriodSeconds: ptr.To(int64(5)),
					Containers: []corev1.Container{{Name: "main", Image: scenario.HelloV1}}},
			}, metav1.CreateOptions{})
			return err
		})
	}
	must(w, all.Wait())
	awaitCrowd(w, crowd)
	must(w, pods.DeleteCollection(w.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	awaitCrowd(w, 0)
}

// awaitCrowd watches until the namespace has so many Pods, all ready.
func awaitCrowd(w *scenario.World, want int) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), crowdPatience)
	defer cancel()
	ready := map[string]bool{}
	note := func(object any, gone bool) bool {
		if pod := object.(*corev1.Pod); gone {
			delete(ready, pod.Name)
		} else {
			ready[pod.Name] = podview.IsReady(pod)
		}
		n := 0
		for _, is := range ready {
			if is {
				n++
			}
		}
		return n == want && len(ready) == want
	}
	source := cache.NewListWatchFromClient(w.Client.CoreV1().RESTClient(), "pods", w.Namespace, fields.Everything())
	listed := func(store cache.Store) (bool, error) {
		done := want == 0 && len(store.List()) == 0
		for _, object := range store.List() {
			done = note(object, false)
		}
		return done, nil
	}
	changed := func(e watch.Event) (bool, error) { return note(e.Object, e.Type == watch.Deleted), nil }
	_, err := watchtools.UntilWithSync(ctx, source, &corev1.Pod{}, listed, changed)
	if err != nil {
		w.Fatalf("waiting for %d Pods: %v; ready or not: %v", want, err, ready)
	}
}
