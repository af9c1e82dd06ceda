package tainteviction

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"keelson.dev/kit/conditions"
	"keelson.dev/kit/events"
	"keelson.dev/kit/failpoint"
	"keelson.dev/kit/pass"
)

// reason is that of the events about Pods.
const reason = "TaintManagerEviction"

var evictions = prometheus.NewCounter(prometheus.CounterOpts{
	Name: "podgc_taint_evictions_total", Help: "Pods that were deleted because of a taint of their node.",
})

// Metrics counts the Pods that were evicted.
func Metrics() prometheus.Collector { return evictions }

// collector evicts the Pods of one Node at a time.
type collector struct {
	cached, live client.Reader
	writer       client.Client
	record       func(about runtime.Object, e events.Event)
	log          *zap.Logger
	now          func() time.Time
	// pods are those on a node.
	pods func(node string) []*corev1.Pod

	mu sync.Mutex // guards what follows
	// evicting are the Nodes that have NoExecute taints.
	evicting map[string]bool
	// tainted is what is remembered of them.
	tainted map[string]memory
}

// memory is what one pass over a Node leaves to the next. Losing it starts the time of a taint anew that does not say
// when it was added.
type memory struct {
	uid     types.UID
	since   map[taintKey]time.Time
	waiting map[types.UID]bool
}

// steps are what a pass over a Node consists of.
func (c *collector) steps() *pass.Steps[*corev1.Node, Input, Plan] {
	return &pass.Steps[*corev1.Node, Input, Plan]{
		Reader: c.cached, New: func() *corev1.Node { return &corev1.Node{} },
		Observe: c.observe, Decide: Decide, Apply: c.apply,
		After: func(in Input, plan Plan) time.Duration { return pass.Until(plan.Wake, in.Now) },
	}
}

// observe looks a second time, past the cache, at a Node from which Pods seem to have to go.
func (c *collector) observe(ctx context.Context, node *corev1.Node) (Input, bool, error) {
	last := c.recall(node)
	if len(noExecute(node)) == 0 && len(last.waiting) == 0 {
		c.forget(node.Name)
		return Input{}, false, nil
	}
	in := Input{Now: c.now(), Node: node, Pods: c.pods(node.Name), Since: last.since, Waiting: last.waiting}
	if len(Decide(in).Evict) == 0 {
		return in, true, nil
	}
	in.Node = &corev1.Node{}
	if err := c.live.Get(ctx, client.ObjectKeyFromObject(node), in.Node); err != nil {
		return Input{}, false, client.IgnoreNotFound(err)
	}
	return in, in.Node.UID == node.UID, nil
}

func (c *collector) apply(ctx context.Context, in Input, plan Plan) error {
	c.remember(in.Node, plan)
	for _, pod := range plan.Spared {
		c.record(pod, events.Normal(reason, "Cancelling deletion of Pod %s/%s", pod.Namespace, pod.Name))
	}
	var errs []error
	for _, pod := range plan.Evict {
		if err := c.evict(ctx, pod); client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("evicting Pod %s/%s: %w", pod.Namespace, pod.Name, err))
		}
	}
	return errors.Join(errs...)
}

// evict writes into the Pod why it goes, and then deletes it: with its own grace period, and only in the version that
// was decided on.
func (c *collector) evict(ctx context.Context, pod *corev1.Pod) error {
	marked, err := c.mark(ctx, pod)
	if err != nil {
		return err
	}
	return failpoint.Around("podgc/evicted.delete", func() error {
		c.record(pod, events.Normal(reason, "Marking for deletion Pod %s/%s", pod.Namespace, pod.Name))
		err := c.writer.Delete(ctx, marked, client.Preconditions{UID: &marked.UID,
			ResourceVersion: &marked.ResourceVersion})
		if err != nil {
			return fmt.Errorf("deleting: %w", err)
		}
		evictions.Inc()
		c.log.Info("evicted Pod", zap.String("namespace", pod.Namespace), zap.String("name", pod.Name),
			zap.String("uid", string(pod.UID)), zap.String("node", pod.Spec.NodeName))
		return nil
	})
}

// mark returns the Pod with the condition that says why it goes, as the server has it now.
func (c *collector) mark(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	list, news := conditions.Pod.Set(pod.Status.Conditions, disruption, c.now())
	if !news {
		return pod, nil
	}
	marked := pod.DeepCopy()
	marked.Status.Conditions = list
	return marked, failpoint.Around("podgc/evicted.status", func() error {
		patch := client.MergeFromWithOptions(pod, client.MergeFromWithOptimisticLock{})
		if err := c.writer.Status().Patch(ctx, marked, patch); err != nil {
			return fmt.Errorf("saying why it goes: %w", err)
		}
		return nil
	})
}

// recall returns what is remembered of the Node.
func (c *collector) recall(node *corev1.Node) memory {
	c.mu.Lock()
	defer c.mu.Unlock()
	if last := c.tainted[node.Name]; last.uid == node.UID {
		return last
	}
	return memory{}
}

func (c *collector) remember(node *corev1.Node, plan Plan) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(plan.Since) == 0 && len(plan.Waiting) == 0 {
		delete(c.tainted, node.Name)
		return
	}
	c.tainted[node.Name] = memory{uid: node.UID, since: plan.Since, waiting: plan.Waiting}
}

// forget drops what is remembered of a Node.
func (c *collector) forget(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.tainted, name)
}

// note remembers whether the Node evicts anybody, and says so.
func (c *collector) note(node *corev1.Node) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(noExecute(node)) == 0 {
		delete(c.evicting, node.Name)
		return false
	}
	c.evicting[node.Name] = true
	return true
}

// evicts reports whether the Node evicts anybody; one that is not known yet does not.
func (c *collector) evicts(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.evicting[name]
}

// leave forgets a Node that is gone.
func (c *collector) leave(name string) {
	c.forget(name)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.evicting, name)
}
