// Package bind carries decisions out: it binds Pods to their nodes, many at a time, and tells the Pods that have none
// why. It and package evict are those of the scheduler that write through the API.
package bind

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/typed/core/v1"

	"keelson.dev/kit/election"
	"keelson.dev/kit/failpoint"
)

const (
	// MaxInFlight is how many bindings may be under way, so that their latency does not bound the rate.
	MaxInFlight = 64
	// requestTimeout bounds one request. A request is not cut short when the process stops or loses its lead: the
	// process that follows must find it done or not done.
	requestTimeout = 10 * time.Second
	// lookPause is the pause between two looks at what became of a binding, lookTimeout bounds all of them. After that
	// the Pod is tried again: if it was bound after all, the API server refuses a second binding.
	lookPause   = time.Second
	lookTimeout = 15 * time.Second
)

// Binding is a Pod and the node that it is to run on.
type Binding struct {
	Pod  *corev1.Pod
	Node string
	// Decided is when the node was chosen.
	Decided time.Time
	// Try is what led there.
	Try Try
}

// Try is one try to find a node for a Pod.
type Try struct {
	// Began is when it did; Attempt counts the tries of the Pod, from 1; Arrived is when the Pod came into the queue.
	Began   time.Time
	Attempt int
	Arrived time.Time
}

// Outcome says what became of a Binding. Err is nil when the API server took it.
type Outcome struct {
	Binding
	Err error
}

// Binder binds in the background.
type Binder struct {
	client  v1.PodsGetter
	volumes Volumes
	terms   *Terms
	report  func(Outcome)
	slots   chan struct{}
	wait    sync.Mutex
	// Delegate binds some Pods; nil where none does. It is set before the first binding.
	Delegate Delegate
}

// Volumes is where claims and volumes are written.
type Volumes interface {
	v1.PersistentVolumeClaimsGetter
	v1.PersistentVolumesGetter
}

// NewBinder returns a Binder that calls report, from any goroutine, with the outcome of each binding.
func NewBinder(client v1.PodsGetter, volumes Volumes, terms *Terms, report func(Outcome)) *Binder {
	return &Binder{client: client, volumes: volumes, terms: terms, report: report,
		slots: make(chan struct{}, MaxInFlight)}
}

// Bind starts a binding and returns at once while fewer than MaxInFlight are under way.
func (b *Binder) Bind(ctx context.Context, binding Binding) {
	b.slots <- struct{}{}
	go func() {
		err := b.bind(context.WithoutCancel(ctx), binding)
		<-b.slots
		b.report(Outcome{Binding: binding, Err: err})
	}()
}

// Wait returns when the bindings that were started before it are done.
func (b *Binder) Wait() {
	b.wait.Lock()
	defer b.wait.Unlock()
	for range cap(b.slots) {
		b.slots <- struct{}{}
	}
	for range cap(b.slots) {
		<-b.slots
	}
}

// bind writes the binding, and where the answer leaves open whether it was taken, looks.
func (b *Binder) bind(ctx context.Context, binding Binding) error {
	if b.Delegate != nil && b.Delegate.Binds(binding.Pod) {
		if err := b.delegate(ctx, binding); !errors.Is(err, ErrPassed) {
			return err
		}
	}
	err := b.write(ctx, binding)
	if err == nil || isRefusal(err) {
		return err
	}
	return b.settle(ctx, binding, err)
}

// settle looks what became of a binding, and returns why it was not made.
func (b *Binder) settle(ctx context.Context, binding Binding, err error) error {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	for {
		bound, lookErr := b.isBound(ctx, binding)
		switch {
		case lookErr == nil && bound:
			return nil
		case lookErr == nil, apierrors.IsNotFound(lookErr):
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(lookPause):
		}
	}
}

func (b *Binder) write(ctx context.Context, binding Binding) error {
	ctx, cancel := context.WithTimeout(b.terms.Writing(ctx, binding.Pod), requestTimeout)
	defer cancel()
	p := binding.Pod
	err := failpoint.Around("scheduler/bind", func() error {
		return b.client.Pods(p.Namespace).Bind(ctx, &corev1.Binding{
			// The UID keeps a new Pod of the same name from getting the node of the old one.
			ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, UID: p.UID},
			Target:     corev1.ObjectReference{Kind: "Node", Name: binding.Node},
		}, metav1.CreateOptions{})
	})
	if err != nil {
		return fmt.Errorf("binding to %s: %w", binding.Node, err)
	}
	return nil
}

// isRefusal reports whether the binding is certainly not made: it was not sent, or the API server said no.
func isRefusal(err error) bool {
	if errors.Is(err, election.ErrNotLeading) {
		return true
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code >= 400 && code < 500 && code != 408
}

// isBound reports whether the Pod is bound to the node.
func (b *Binder) isBound(ctx context.Context, binding Binding) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	p, err := b.client.Pods(binding.Pod.Namespace).Get(ctx, binding.Pod.Name, metav1.GetOptions{})
	if err != nil {
		return false, fmt.Errorf("looking whether it was bound: %w", err)
	}
	return p.UID == binding.Pod.UID && p.Spec.NodeName == binding.Node, nil
}
