package cycle_test

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"syscall"
	"testing"
	"time"
)

// scalePods is how many Pods get a node, of scaleClasses: what all of them together keep of a million nodes fits into
// the bound of package class.
const (
	scalePods    = 1_000_000
	scaleClasses = 10
)

// BenchmarkScale places a million Pods, all of which stay: the CPU time of each from its arrival to its binding, and
// the memory of nodes and Pods together at the end.
func BenchmarkScale(b *testing.B) {
	// Less room for garbage, so that the peak stays near what is measured.
	defer debug.SetGCPercent(debug.SetGCPercent(40))
	for _, nodes := range []int{100_000, 1_000_000} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			for b.Loop() {
				placeAll(b, nodes)
			}
		})
	}
}

func placeAll(b *testing.B, nodes int) {
	b.Helper()
	var none, all runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&none)
	c := benchCycle(nodes)
	before := cpuTime(b)
	for i := range scalePods {
		p := benchPod(i, scaleClasses)
		c.SetPod(p, time.Time{})
		v, ok := c.Next(time.Time{})
		if !ok || v.Node == "" {
			b.Fatalf("pod %s was not placed: %s", p.Name, v.Message())
		}
		p.Spec.NodeName = v.Node
		c.SetPod(p, time.Time{})
	}
	used := cpuTime(b) - before
	runtime.GC()
	runtime.ReadMemStats(&all)
	b.ReportMetric(float64(used.Nanoseconds())/1000/scalePods, "cpu-us/pod")
	b.ReportMetric(float64(all.HeapAlloc-none.HeapAlloc)/(1<<20), "MiB")
	runtime.KeepAlive(c)
}

// cpuTime returns the time that this process has used, the garbage collector's included.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
