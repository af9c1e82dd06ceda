package cycle_test

import (
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/scheduler/internal/cycle"
)

// history is the common input of a Cycle and a reference, whose nodes and Pods these are.
type history struct {
	t       *testing.T
	gen     *generator
	now     time.Time
	fast    *cycle.Cycle
	nodes   map[string]*corev1.Node
	pods    map[types.UID]*corev1.Pod
	waiting map[types.UID]*corev1.Pod // Pods without a node
	flying  map[types.UID]*corev1.Pod // with a node that the API does not show yet
}

func newHistory(t *testing.T, fast *cycle.Cycle, random *rand.Rand, nodes map[string]*corev1.Node,
	pods map[types.UID]*corev1.Pod) *history {
	return &history{t: t, gen: &generator{Rand: random}, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), fast: fast,
		nodes: nodes, pods: pods, waiting: map[types.UID]*corev1.Pod{}, flying: map[types.UID]*corev1.Pod{}}
}

func (h *history) setNode(n *corev1.Node) {
	h.nodes[n.Name] = n
	h.fast.SetNode(n)
}

func (h *history) bind(p *corev1.Pod) {
	delete(h.flying, p.UID)
	h.pods[p.UID] = p
	h.fast.SetPod(p, h.now)
}

func (h *history) remove(p *corev1.Pod) {
	delete(h.pods, p.UID)
	delete(h.waiting, p.UID)
	delete(h.flying, p.UID)
	h.fast.RemovePod(p)
}

// place notes a decision whose binding the API does not show yet.
func (h *history) place(v cycle.Verdict) {
	placed := v.Pod.DeepCopy()
	placed.Spec.NodeName = v.Node
	delete(h.waiting, v.Pod.UID)
	h.flying[v.Pod.UID], h.pods[v.Pod.UID] = placed, placed
}

// refuse lets the API refuse a binding.
func (h *history) refuse(p *corev1.Pod) {
	delete(h.flying, p.UID)
	delete(h.pods, p.UID)
	again := p.DeepCopy()
	again.Spec.NodeName = ""
	h.waiting[p.UID] = again
	h.fast.Failed(p.UID, h.now)
}
