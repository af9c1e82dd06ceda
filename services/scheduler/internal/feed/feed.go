// Package feed brings what happens to nodes and Pods from the API to the scheduler, reduced to what it reads.
package feed

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// Change is one node or Pod that is new, changed or gone. Exactly one of the fields is set.
type Change struct {
	Node, GoneNode *corev1.Node
	Pod, GonePod   *corev1.Pod
}

// Feed watches nodes and Pods.
type Feed struct {
	nodes, pods cache.SharedIndexInformer
	synced      []cache.InformerSynced
}

// live selects the Pods that take room or want some: those that have ended look deleted.
var live = fields.AndSelectors(
	fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)),
	fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed)),
)

// New returns a Feed that calls deliver with every change, in the order of the API for each object. Calls for nodes and
// for Pods come from two goroutines.
func New(client kubernetes.Interface, deliver func(Change)) (*Feed, error) {
	rest := client.CoreV1().RESTClient()
	f := &Feed{
		nodes: cache.NewSharedIndexInformer(cache.NewListWatchFromClient(rest, "nodes", "", fields.Everything()),
			&corev1.Node{}, 0, nil),
		pods: cache.NewSharedIndexInformer(cache.NewListWatchFromClient(rest, "pods", "", live), &corev1.Pod{}, 0,
			nil),
	}
	if err := f.follow(f.nodes, trimNode, nodeHandler(deliver)); err != nil {
		return nil, fmt.Errorf("watching nodes: %w", err)
	}
	if err := f.follow(f.pods, trimPod, podHandler(deliver)); err != nil {
		return nil, fmt.Errorf("watching pods: %w", err)
	}
	return f, nil
}

func (f *Feed) follow(informer cache.SharedIndexInformer, trim cache.TransformFunc,
	handler cache.ResourceEventHandler) error {
	if err := informer.SetTransform(trim); err != nil {
		return err
	}
	registration, err := informer.AddEventHandler(handler)
	if err != nil {
		return err
	}
	f.synced = append(f.synced, registration.HasSynced)
	return nil
}

// Run watches until ctx ends.
func (f *Feed) Run(ctx context.Context) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.nodes.RunWithContext(ctx)
	}()
	f.pods.RunWithContext(ctx)
	<-done
}

// Synced reports whether all that was there at the start has been delivered.
func (f *Feed) Synced() bool {
	for _, synced := range f.synced {
		if !synced() {
			return false
		}
	}
	return true
}

// WaitForSync returns true when Synced, false when ctx ended before.
func (f *Feed) WaitForSync(ctx context.Context) bool {
	return cache.WaitForCacheSync(ctx.Done(), f.synced...)
}

func nodeHandler(deliver func(Change)) cache.ResourceEventHandler {
	return handler(
		func(n *corev1.Node) { deliver(Change{Node: n}) },
		func(n *corev1.Node) { deliver(Change{GoneNode: n}) },
	)
}

func podHandler(deliver func(Change)) cache.ResourceEventHandler {
	return handler(
		func(p *corev1.Pod) { deliver(Change{Pod: p}) },
		func(p *corev1.Pod) { deliver(Change{GonePod: p}) },
	)
}

// handler calls set for every object that is new or changed and gone for every one that is no longer.
func handler[T any](set, gone func(T)) cache.ResourceEventHandler {
	call := func(object any, f func(T)) {
		if lost, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = lost.Obj
		}
		if typed, ok := object.(T); ok {
			f(typed)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { call(object, set) },
		UpdateFunc: func(_, object any) { call(object, set) },
		DeleteFunc: func(object any) { call(object, gone) },
	}
}
