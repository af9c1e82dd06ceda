package cycle

import (
	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/volumes"
)

// placement assigns Pods to nodes. A Pod takes its room there until the API shows the node or unassign takes it back.
type placement struct {
	state          *columns.State
	book           *volumes.Book
	classification *classification
	nominations    *nominations
}

// assign assigns the Pod to the node, and returns what its claims get.
func (l *placement) assign(p *pod, node string) []volumes.Step {
	p.node = node
	p.enter(assumed)
	l.state.SetPod(p.object, node, p.class.Pod.Usage)
	l.nominations.set(p, "")
	steps := l.take(p)
	l.book.Moved(l.state)
	return steps
}

// take notes that a Pod has its node, and returns what its claims get.
func (l *placement) take(p *pod) []volumes.Step {
	if p.class.Pod.Volumes == nil {
		return nil
	}
	l.book.Use(p.object, p.node)
	return l.book.Assume(p.object, l.nodeOf(p))
}

// nodeOf returns the name and the labels of the Pod's node; a node that is gone has no labels.
func (l *placement) nodeOf(p *pod) *corev1.Node {
	if slot := l.state.Slot(p.node); slot != columns.None && l.state.Known(slot) {
		return l.state.View(slot).Node()
	}
	node := &corev1.Node{}
	node.Name = p.node
	return node
}

// unassign takes the node from a Pod and classifies the Pod again.
func (l *placement) unassign(p *pod) {
	p.node, p.claims = "", nil
	p.enter(pending)
	l.state.RemovePod(p.UID)
	l.book.Release(p.UID)
	l.book.Wait(p.object)
	l.classification.classify(p, p.object)
	l.nominations.set(p, p.object.Status.NominatedNodeName)
}
