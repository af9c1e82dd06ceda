// Package lanes does many things at a time, but what concerns the same object one after the other.
package lanes

import (
	"errors"
	"sync/atomic"

	"keelson.dev/kit/contained"
)

// Run calls do with each number below count and returns when all calls have. At most as many run at a time as there
// are lanes; those of one key run one after the other, in their order. A call that returns false ends its key: what
// comes after it there is left out, and other keys go on. Where a call panics its lane ends, and Run panics when the
// others have ended: it is for the caller of Run to recover.
func Run[K comparable](lanes, count int, key func(i int) K, do func(i int) bool) {
	queues := ordered(count, key)
	var taken atomic.Int64
	var running contained.Group
	var broken atomic.Value // error
	for range min(lanes, len(queues)) {
		running.Go("a lane", func() {
			for next := taken.Add(1) - 1; next < int64(len(queues)); next = taken.Add(1) - 1 {
				drain(queues[next], do)
			}
		}, func(err error) { broken.Store(err) })
	}
	running.Wait()
	if err, is := broken.Load().(error); is {
		panic(err)
	}
}

// Each calls do with each item, at most as many at a time as there are lanes, in no order, and returns all errors.
func Each[T any](lanes int, items []T, do func(T) error) error {
	errs := make([]error, len(items))
	Run(lanes, len(items), func(i int) int { return i }, func(i int) bool {
		errs[i] = do(items[i])
		return true
	})
	return errors.Join(errs...)
}

// ordered returns the numbers below count by their keys: the key of the lowest number first, each key's numbers rising.
func ordered[K comparable](count int, key func(i int) K) (queues [][]int) {
	place := map[K]int{}
	for i := range count {
		k := key(i)
		at, known := place[k]
		if !known {
			at = len(queues)
			place[k] = at
			queues = append(queues, nil)
		}
		queues[at] = append(queues[at], i)
	}
	return queues
}

// drain calls do with each number until one call returns false.
func drain(queue []int, do func(i int) bool) {
	for _, i := range queue {
		if !do(i) {
			return
		}
	}
}
