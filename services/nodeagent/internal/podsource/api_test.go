package podsource

import (
	"context"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
)

// slow are workers that take a Pod only when they are allowed to.
type slow struct {
	let   chan struct{}
	taken []types.UID
}

func (s *slow) Set(pod *corev1.Pod, _ bool) {
	<-s.let
	s.taken = append(s.taken, pod.UID)
}

func (s *slow) Remove(types.UID) {}

// The source is synced when the workers have every Pod of the first list, however long they take: what the node has
// of Pods unknown by then is ended, so that a later Pod would lose its containers.
func TestSyncedWhenTheWorkersKnowAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(context.Background())
		defer synctest.Wait()
		defer stop()
		pod := func(name string) *corev1.Pod {
			return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: types.UID(name)},
				Spec: corev1.PodSpec{NodeName: "node"}}
		}
		workers := &slow{let: make(chan struct{})}
		source, err := API(fake.NewClientset(pod("a"), pod("b")), "node", workers, func(types.UID) bool { return true })
		if err != nil {
			t.Fatal(err)
		}
		go source.Run(ctx)
		synced := make(chan bool, 1)
		go func() { synced <- source.Synced(ctx) }()
		for n := range 2 {
			synctest.Wait()
			select {
			case <-synced:
				close(workers.let)
				t.Fatalf("synced when the workers had %d of 2 Pods", n)
			default:
			}
			workers.let <- struct{}{}
		}
		if !<-synced || len(workers.taken) != 2 {
			t.Errorf("synced with %v", workers.taken)
		}
	})
}
