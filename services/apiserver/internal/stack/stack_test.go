package stack

import (
	"runtime"
	"sync"
	"testing"
)

// A goroutine that calls Grow has 32 KiB of stack.
func TestGrow(t *testing.T) {
	const goroutines = 200
	var grown, done sync.WaitGroup
	end := make(chan struct{})
	before := inUse()
	grown.Add(goroutines)
	for range goroutines {
		done.Go(func() {
			Grow()
			grown.Done()
			<-end
		})
	}
	grown.Wait()
	each := (inUse() - before) / goroutines >> 10
	close(end)
	done.Wait()
	if each < 30 || each > 40 {
		t.Errorf("%d KiB of stack for each goroutine, want 32", each)
	}
}

func inUse() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.StackInuse)
}
