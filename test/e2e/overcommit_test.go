package e2e

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"keelson.dev/kit/subprocess"
	"keelson.dev/test/mesh"
	"keelson.dev/test/mesh/processes"
	"keelson.dev/test/scenario"
)

// pause is how long a leader stands still.
const pause = 30 * time.Second

// TestNoOvercommitThroughLeaderHandover fills nodes by two schedulers of one profile: the leader stands still for half
// a minute with work at hand while a copy leads, wakes, and leads again when the copy is killed. No Pod ever gets a
// second node, no node more than it has, and in the end each has as many as it can take.
//
// SAF-121 POD-025
func TestNoOvercommitThroughLeaderHandover(t *testing.T) {
	m := processes.Shared(t, 0)
	s := bare(t, m)
	const nodes, each = 3, 4
	for i := range nodes {
		s.node(fmt.Sprint("n", i), fmt.Sprint(each), nil)
	}
	seen := s.watchRoom(each)
	made := 0
	run := func(n int) {
		for range n {
			s.run(fmt.Sprintf("p%02d", made), "1", "", 0)
			made++
		}
	}
	leader := m.Of(t, mesh.Scheduler)[0]
	const lease = "scheduler.default-scheduler"
	first := awaitHolder(t, s.Client, lease, "", time.Minute)
	copied := m.StartCopy(t, mesh.Scheduler)
	run(2)
	seen.awaitBound(2)
	awaitRenewals(t, s.Client, 3, lease)

	run(4) // on their way, or not even seen
	signal(t, leader, syscall.SIGSTOP)
	t.Cleanup(func() { signal(t, leader, syscall.SIGCONT) })
	stopped := time.Now()
	run(12)
	awaitHolder(t, s.Client, lease, first, takeover)
	seen.awaitBound(nodes * each)
	for _, name := range seen.some(4) {
		s.end(name)
	}
	seen.awaitBound(nodes * each)
	<-time.After(time.Until(stopped.Add(pause)))
	signal(t, leader, syscall.SIGCONT)
	for _, name := range seen.some(2) {
		s.end(name)
	}
	seen.awaitBound(nodes * each)

	if err := subprocess.Kill(context.Background(), copied); err != nil {
		t.Fatal(err)
	}
	giveUp(s.World, mesh.Scheduler)
	for _, name := range seen.some(6) {
		s.end(name)
	}
	run(6)
	seen.awaitBound(nodes * each)
}

// room is what a watch has seen of Pods and their nodes.
type room struct {
	s  bareNodes
	mu sync.Mutex
	// nodes is where each Pod is that takes room, names who it is, ever where it was, and gone who is deleted.
	nodes, names, ever map[types.UID]string
	gone               map[types.UID]bool
}

// watchRoom fails the test once a Pod has a second node, or a node more Pods of a CPU than it has.
func (s bareNodes) watchRoom(most int) *room {
	s.Helper()
	r := &room{s: s, nodes: map[types.UID]string{}, names: map[types.UID]string{}, ever: map[types.UID]string{},
		gone: map[types.UID]bool{}}
	w, err := s.Client.CoreV1().Pods(s.Namespace).Watch(s.Context(), metav1.ListOptions{})
	if err != nil {
		s.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e := range w.ResultChan() {
			if p, ok := e.Object.(*corev1.Pod); ok {
				r.see(e.Type, p, most)
			}
		}
	}()
	s.Cleanup(func() { w.Stop(); <-done })
	return r
}

func (r *room) see(event watch.EventType, p *corev1.Pod, most int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	node := p.Spec.NodeName
	if before := r.ever[p.UID]; before != "" && node != before {
		r.s.Errorf("Pod %s was on %s and is on %q", p.Name, before, node)
	}
	if node == "" {
		return
	}
	r.ever[p.UID] = node
	if event == watch.Deleted || r.gone[p.UID] {
		delete(r.nodes, p.UID)
		return
	}
	r.nodes[p.UID], r.names[p.UID] = node, p.Name
	on := 0
	for other := range maps.Values(r.nodes) {
		if other == node {
			on++
		}
	}
	if on > most {
		r.s.Errorf("%d Pods of a CPU are on %s, which has %d", on, node, most)
	}
}

func (r *room) bound() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.nodes)
}

func (r *room) awaitBound(n int) {
	r.s.Helper()
	r.s.Await(fmt.Sprint(n, " Pods with a node"), func() scenario.Answer {
		if got := r.bound(); got != n {
			return scenario.Sawf("%v have one", got)
		}
		return ""
	})
}

// some returns the names of Pods that have a node, and counts them as gone.
func (r *room) some(n int) (names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for uid := range r.nodes {
		if len(names) == n {
			break
		}
		names = append(names, r.names[uid])
		delete(r.nodes, uid)
		r.gone[uid] = true
	}
	return names
}
