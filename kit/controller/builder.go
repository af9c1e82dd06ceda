package controller

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	ctrl "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"keelson.dev/kit/introspect"
)

// Builder puts a controller together: what makes a pass, what wakes an object up for one, and what else belongs to a
// term. Its steps return no errors: Runnable returns the first one, including those passed to Setup.Check.
type Builder[request comparable] struct {
	setup *Setup
	built ctrl.TypedController[request]
	term  term
}

// Build begins a controller whose passes r makes, concurrent of them at once. Introspection shows its queue and its
// errors; a panic of a pass counts as its error.
func Build[request comparable](s *Setup, concurrent int, r reconcile.TypedReconciler[request]) *Builder[request] {
	built, err := newReconciler(s, concurrent, r)
	s.Check(err)
	return &Builder[request]{setup: s, built: built}
}

// Watch adds what wakes objects up. The first pass waits until each of the sources has been read.
func (b *Builder[request]) Watch(sources ...source.TypedSource[request]) *Builder[request] {
	for _, from := range sources {
		if b.setup.wrong != nil {
			break
		}
		if err := b.built.Watch(from); err != nil {
			b.setup.Check(fmt.Errorf("watching %v: %w", from, err))
		}
	}
	return b
}

// Queue gives the queue to a source that adds to it of its own accord, at the start of the term and before the first
// pass.
func (b *Builder[request]) Queue(take func(Queue[request])) *Builder[request] {
	return b.Watch(source.TypedFunc[request](func(_ context.Context, q Queue[request]) error {
		take(q)
		return nil
	}))
}

// Explain has e answer for objects of the first kind that the controller's Registration names; see Setup.Explain.
func (b *Builder[request]) Explain(e introspect.Explainer) *Builder[request] {
	b.setup.Explain(e)
	return b
}

// ExplainKind is Explain for another kind of them.
func (b *Builder[request]) ExplainKind(kind string, e introspect.Explainer) *Builder[request] {
	b.setup.ExplainKind(kind, e)
	return b
}

// First begins each term with start, before the first pass. Its error ends the term.
func (b *Builder[request]) First(start func(ctx context.Context) error) *Builder[request] {
	b.term.first = append(b.term.first, start)
	return b
}

// Beside has run go on as long as the controller. One of them that fails ends the other.
func (b *Builder[request]) Beside(run func(ctx context.Context) error) *Builder[request] {
	b.term.running = append(b.term.running, run)
	return b
}

// Last ends each term with end, when no pass is under way any more.
func (b *Builder[request]) Last(end func()) *Builder[request] {
	b.term.last = append(b.term.last, end)
	return b
}

// Runnable returns the controller, unless a part of it could not be had.
func (b *Builder[request]) Runnable() (Runnable, error) {
	if b.setup.wrong != nil {
		return nil, b.setup.wrong
	}
	b.term.running = append(b.term.running, b.built.Start)
	return b.term, nil
}

// term is a controller between winning its Lease and losing it.
type term struct {
	first   []func(ctx context.Context) error
	running []func(ctx context.Context) error // the controller's too
	last    []func()
}

// Start implements Runnable.
func (t term) Start(ctx context.Context) error {
	for _, end := range t.last {
		defer end()
	}
	for _, start := range t.first {
		if err := start(ctx); err != nil {
			return err
		}
	}
	running, ctx := errgroup.WithContext(ctx)
	for _, run := range t.running {
		running.Go(func() error { return run(ctx) })
	}
	return running.Wait()
}
