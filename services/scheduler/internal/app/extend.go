package app

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"keelson.dev/kit/election"
	"keelson.dev/services/scheduler/internal/bind"
	"keelson.dev/services/scheduler/internal/extender"
	"keelson.dev/services/scheduler/internal/extenderclient"
)

// answer is what extenders said to a question, and when it was put.
type answer struct {
	question *extender.Question
	extender.Answer
	asked time.Time
}

// consult asks extenders about a Pod.
func (l *loop) consult(ctx context.Context, q *extender.Question) {
	start := l.now()
	l.asker.Ask(ctx, q, func(a extender.Answer) {
		l.do(func() { l.answers = append(l.answers, answer{question: q, Answer: a, asked: start}) })
	})
}

// takeAnswers decides for the Pods about which extenders have answered, while bindings may start.
func (l *loop) takeAnswers(ctx context.Context) {
	for len(l.answers) > 0 && l.inFlight < bind.MaxInFlight {
		next := l.answers[0]
		l.answers = l.answers[1:]
		if v, ok := l.cycle.Answered(next.question, next.Answer, l.now()); ok {
			l.carryOut(ctx, v, next.asked)
		}
	}
}

// extend prepares the calls of extenders, where there are any. They see Pods and nodes whole.
func (s *scheduler) extend() error {
	if len(s.Scheduler.Extenders) == 0 {
		return nil
	}
	clients, err := extenderclient.Clients(s.Scheduler.Extenders)
	if err != nil {
		return err
	}
	api, err := kubernetes.NewForConfig(election.Fence(s.REST))
	if err != nil {
		return fmt.Errorf("building the client: %w", err)
	}
	nodes := func(string) *corev1.Node { return nil }
	if extenderclient.NeedsNodes(s.Scheduler.Extenders) {
		s.wholeNodes = informers.NewSharedInformerFactory(api, 0).Core().V1().Nodes().Informer()
		nodes = wholeNode(s.wholeNodes.GetStore())
	}
	s.loop.asker = extenderclient.New(s.Scheduler.Extenders, clients, api.CoreV1(), nodes, s.terms, s.Log)
	s.loop.binder.Delegate = s.loop.asker
	return nil
}

// nodesSynced waits until the nodes for the extenders have been read.
func (s *scheduler) nodesSynced(ctx context.Context) bool {
	return s.wholeNodes == nil || cache.WaitForCacheSync(ctx.Done(), s.wholeNodes.HasSynced)
}

func wholeNode(store cache.Store) func(string) *corev1.Node {
	return func(name string) *corev1.Node {
		if n, ok, err := store.GetByKey(name); ok && err == nil {
			return n.(*corev1.Node)
		}
		return nil
	}
}
