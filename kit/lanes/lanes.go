// Package lanes does many things at a time, but what concerns the same object one after the other.
package lanes

import (
	"hash/maphash"
	"sync"
)

var seed = maphash.MakeSeed()

// Run calls do with each number below count and returns when all calls have. At most as many run at a time as there
// are lanes; those of one key are in one lane, where they run in their order. A call that returns false ends its lane:
// what comes after it there is left out.
func Run[K comparable](lanes, count int, key func(i int) K, do func(i int) bool) {
	queues := make([][]int, lanes)
	for i := range count {
		lane := maphash.Comparable(seed, key(i)) % uint64(lanes)
		queues[lane] = append(queues[lane], i)
	}
	var running sync.WaitGroup
	for _, queue := range queues {
		if len(queue) == 0 {
			continue
		}
		running.Go(func() {
			for _, i := range queue {
				if !do(i) {
					return
				}
			}
		})
	}
	running.Wait()
}
