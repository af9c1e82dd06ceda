// Package alloc hands out numbers of a range, the node ports, each to one owner at a time. What is taken stands in the
// store, in one bit array per range that changes by compare and swap: several apiservers agree, and a crash loses
// nothing but what Audit finds again.
package alloc

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"

	"keelson.dev/services/apiserver/internal/registry/rest"
	"keelson.dev/services/apiserver/internal/resource"
)

// ErrTaken and ErrFull are why an allocation fails.
var (
	ErrTaken = errors.New("already allocated")
	ErrFull  = errors.New("range is full")
)

// stored is how the bit arrays are stored; it is not served.
var stored = resource.Resource[*corev1.RangeAllocation]{
	Name:          "rangeallocations",
	Singular:      "rangeallocation",
	ClusterScoped: true,
	New:           func() *corev1.RangeAllocation { return &corev1.RangeAllocation{} },
	NewList:       func() runtime.Object { return &rangeAllocationList{} },
}

// Store keeps the bit arrays of all ranges.
type Store struct {
	storage storage.Interface
	keyFunc func(context.Context, string) (string, error)
	close   func()
}

// Range is one range of numbers, counted from 0.
type Range struct {
	store *Store
	name  string
	label string
	size  int
	start func(size int) int
	idle  map[int]int
}

// Range returns the range called name with size numbers. label says what the numbers stand for: once the range is
// configured with another label, the numbers that were taken before mean nothing.
func (s *Store) Range(name, label string, size int) *Range {
	return &Range{store: s, name: name, label: label, size: size, start: rand.IntN}
}

// Take takes one certain offset.
func (r *Range) Take(ctx context.Context, offset int, dryRun bool) error {
	return r.change(ctx, dryRun, func(taken bitmap) (bitmap, error) {
		if taken.has(offset) {
			return nil, ErrTaken
		}
		return taken.with(offset), nil
	})
}

// TakeNext takes any free offset.
func (r *Range) TakeNext(ctx context.Context, dryRun bool) (int, error) {
	var chosen int
	err := r.change(ctx, dryRun, func(taken bitmap) (bitmap, error) {
		offset, found := pick(taken, r.size, band(r.size), r.start(r.size))
		if !found {
			return nil, ErrFull
		}
		chosen = offset
		return taken.with(offset), nil
	})
	return chosen, err
}

// Release gives offsets back; those that are free already stay so.
func (r *Range) Release(ctx context.Context, offsets ...int) error {
	if len(offsets) == 0 {
		return nil
	}
	return r.change(ctx, false, func(taken bitmap) (bitmap, error) {
		for _, offset := range offsets {
			taken = taken.without(offset)
		}
		return taken, nil
	})
}

// Audit takes what is in use but not taken and releases what has long been taken without being used. It is to be called
// every now and then, by one goroutine. used is called inside, after the taken offsets were read.
func (r *Range) Audit(ctx context.Context, used func(context.Context) (map[int]bool, error)) error {
	taken, err := r.taken(ctx)
	if err != nil {
		return err
	}
	inUse, err := used(ctx)
	if err != nil {
		return fmt.Errorf("auditing %s: %w", r.name, err)
	}
	lost, leaked, idle := audit(taken, r.size, inUse, r.idle)
	r.idle = idle
	if len(lost)+len(leaked) == 0 {
		return nil
	}
	return r.change(ctx, false, func(taken bitmap) (bitmap, error) {
		for _, offset := range lost {
			taken = taken.with(offset)
		}
		for _, offset := range leaked {
			taken = taken.without(offset)
		}
		return taken, nil
	})
}

// change replaces the range's bit array by what edit makes of it. edit may run several times.
func (r *Range) change(ctx context.Context, dryRun bool, edit func(bitmap) (bitmap, error)) error {
	if dryRun {
		taken, err := r.taken(ctx)
		if err != nil {
			return err
		}
		_, err = edit(taken)
		return err
	}
	key, err := r.store.keyFunc(ctx, r.name)
	if err != nil {
		return fmt.Errorf("allocating from %s: %w", r.name, err)
	}
	update := storage.SimpleUpdate(func(existing runtime.Object) (runtime.Object, error) {
		state := existing.(*corev1.RangeAllocation)
		edited, err := edit(r.bits(state))
		if err != nil {
			return nil, err
		}
		state.Name, state.Range, state.Data = r.name, r.label, edited
		return state, nil
	})
	err = r.store.storage.GuaranteedUpdate(ctx, key, &corev1.RangeAllocation{}, true, nil, update, nil)
	if err != nil {
		return fmt.Errorf("allocating from %s: %w", r.name, err)
	}
	return nil
}

func (r *Range) taken(ctx context.Context) (bitmap, error) {
	key, err := r.store.keyFunc(ctx, r.name)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", r.name, err)
	}
	state := &corev1.RangeAllocation{}
	if err := r.store.storage.Get(ctx, key, storage.GetOptions{IgnoreNotFound: true}, state); err != nil {
		return nil, fmt.Errorf("reading %s: %w", r.name, err)
	}
	return r.bits(state), nil
}

func (r *Range) bits(state *corev1.RangeAllocation) bitmap {
	if state.Range != r.label {
		return nil
	}
	return bitmap(state.Data)
}

// Open opens the store of the bit arrays.
func Open(o rest.Options) (*Store, error) {
	opened, err := rest.Serve(stored).Open(o)
	if err != nil {
		return nil, fmt.Errorf("opening the allocations: %w", err)
	}
	return &Store{storage: opened.Store.Storage.Storage, keyFunc: opened.KeyFunc, close: opened.Destroy}, nil
}

// Close closes the store.
func (s *Store) Close() { s.close() }

// rangeAllocationList only satisfies the store, which never lists.
type rangeAllocationList struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []corev1.RangeAllocation
}

// DeepCopyObject returns a copy that shares nothing.
func (l *rangeAllocationList) DeepCopyObject() runtime.Object {
	out := &rangeAllocationList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopy())
	}
	return out
}
