package feed

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// Lister lists and watches objects of one kind; the typed clients are Listers.
type Lister[L runtime.Object] interface {
	List(ctx context.Context, options metav1.ListOptions) (L, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// Watched is what is watched.
type Watched[L runtime.Object] struct {
	// Client is what API comes from: it knows how watches may begin.
	Client any
	API    Lister[L]
	// What is what is listed, in words.
	What string
}

// Watch returns a source that watches objects of type O, and keeps of each only its row.
func Watch[O any, L runtime.Object](of Watched[L], row func(O) (Row, error)) Source {
	return func(ctx context.Context, into Sink) {
		problem := func(err error) {
			if err == nil || ctx.Err() == nil {
				into.Problem(describe(err, of.What))
			}
		}
		api := &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				list, err := of.API.List(ctx, options)
				if err != nil { // after a list that succeeds, the watch may still be refused
					problem(err)
				}
				return list, err
			},
			WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
				events, err := of.API.Watch(ctx, options)
				problem(err)
				return events, err
			},
		}
		store := &rowStore[O]{into: into, row: row}
		known := cache.ToListWatcherWithWatchListSemantics(api, of.Client)
		reflector := cache.NewReflectorWithOptions(known, nil, store, cache.ReflectorOptions{Name: of.What})
		// The page says what fails: a log would only repeat it.
		reflector.RunWithContext(klog.NewContext(ctx, klog.Logger{}))
	}
}

// rowStore is what a reflector fills: it turns objects into rows.
type rowStore[O any] struct {
	into Sink
	row  func(O) (Row, error)
}

// Add implements cache.ReflectorStore.
func (s *rowStore[O]) Add(object any) error { return s.Update(object) }

// Update implements cache.ReflectorStore.
func (s *rowStore[O]) Update(object any) error {
	if typed, ok := object.(O); ok {
		row, err := s.row(typed)
		if err != nil {
			return err
		}
		s.into.Set(row)
	}
	return nil
}

// Delete implements cache.ReflectorStore.
func (s *rowStore[O]) Delete(object any) error {
	if typed, ok := object.(O); ok {
		row, err := s.row(typed)
		if err != nil {
			return err
		}
		s.into.Remove(row.Key)
	}
	return nil
}

// Replace implements cache.ReflectorStore.
func (s *rowStore[O]) Replace(objects []any, _ string) error {
	rows := make([]Row, 0, len(objects))
	for _, object := range objects {
		if typed, ok := object.(O); ok {
			row, err := s.row(typed)
			if err != nil {
				return err
			}
			rows = append(rows, row)
		}
	}
	s.into.Replace(rows)
	return nil
}

// Resync implements cache.ReflectorStore.
func (s *rowStore[O]) Resync() error { return nil }
