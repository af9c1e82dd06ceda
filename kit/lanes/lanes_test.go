package lanes_test

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"keelson.dev/kit/lanes"
)

// What has the same key is done in its order, and no further than to the call that says so, which ends no other key,
// however few lanes there are.
func TestRunKeepsTheOrderOfAKey(t *testing.T) {
	for _, count := range []int{1, 2, 3, 1000} {
		t.Run(strconv.Itoa(count), func(t *testing.T) { keepsTheOrderOfAKey(t, count) })
	}
}

func keepsTheOrderOfAKey(t *testing.T, count int) {
	var mu sync.Mutex // guards done
	done := map[int][]int{}
	lanes.Run(count, 30, func(i int) int { return i % 3 }, func(i int) bool {
		mu.Lock()
		defer mu.Unlock()
		done[i%3] = append(done[i%3], i)
		return i != 10
	})
	want := map[int][]int{0: {0, 3, 6, 9, 12, 15, 18, 21, 24, 27}, 1: {1, 4, 7, 10},
		2: {2, 5, 8, 11, 14, 17, 20, 23, 26, 29}}
	for key, order := range want {
		if !slices.Equal(done[key], order) {
			t.Errorf("of key %d %v are done, want %v", key, done[key], order)
		}
	}
}

// Each item is done even if others fail, and every error is returned.
func TestEach(t *testing.T) {
	var mu sync.Mutex // guards done
	var done []int
	first, second := errors.New("1 is odd"), errors.New("3 is odd")
	err := lanes.Each(2, []int{0, 1, 2, 3}, func(item int) error {
		mu.Lock()
		defer mu.Unlock()
		done = append(done, item)
		return map[int]error{1: first, 3: second}[item]
	})
	slices.Sort(done)
	if !slices.Equal(done, []int{0, 1, 2, 3}) {
		t.Errorf("%v are done", done)
	}
	if !errors.Is(err, first) || !errors.Is(err, second) {
		t.Errorf("it returns %v", err)
	}
	if err := lanes.Each(2, []int{0, 2}, func(int) error { return nil }); err != nil {
		t.Errorf("without an error it returns %v", err)
	}
}

// No more calls run at a time than there are lanes.
func TestRunIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex // guards now and most
		now, most := 0, 0
		count := func(by int) {
			mu.Lock()
			defer mu.Unlock()
			now += by
			most = max(most, now)
		}
		lanes.Run(4, 400, func(i int) int { return i }, func(int) bool {
			count(1)
			time.Sleep(time.Second)
			count(-1)
			return true
		})
		if most != 4 {
			t.Errorf("%d calls at a time, want 4", most)
		}
	})
}

// A panic reaches who waits for the calls, and not before all of them have ended.
func TestRunBreaksOff(t *testing.T) {
	var done atomic.Int32
	defer func() {
		err, _ := recover().(error)
		if err == nil || !strings.Contains(err.Error(), "no such case") || done.Load() != 29 {
			t.Errorf("%v, %d done", err, done.Load())
		}
	}()
	lanes.Run(4, 30, func(i int) int { return i }, func(i int) bool {
		if i == 3 {
			panic("no such case")
		}
		done.Add(1)
		return true
	})
}
