package tainteviction

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"keelson.dev/kit/explain"
)

// Outlook describes what will happen to Pods, while the collector leads in this process.
type Outlook struct {
	mu     sync.Mutex // guards leader
	leader *collector
}

// Of returns what the collector is about to do with a Pod, or waits for; nothing where it does not lead here.
func (o *Outlook) Of(ctx context.Context, pod *corev1.Pod) explain.Account {
	o.mu.Lock()
	c := o.leader
	o.mu.Unlock()
	node := &corev1.Node{}
	if c == nil || pod.Spec.NodeName == "" ||
		c.cached.Get(ctx, client.ObjectKey{Name: pod.Spec.NodeName}, node) != nil {
		return explain.Account{}
	}
	last := c.recall(node)
	in := Input{Now: c.now(), Node: node, Pods: []*corev1.Pod{pod}, Since: last.since, Waiting: last.waiting}
	return account(in, Decide(in), pod)
}

func (o *Outlook) lead(c *collector) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.leader = c
}
