package bench

import (
	"fmt"
	"testing"
	"time"

	"keelson.dev/test/mesh"
	"keelson.dev/test/mesh/processes"
)

// idleFor is how long the idle mesh is watched.
const idleFor = 30 * time.Second

// BenchmarkIdle measures a mesh of one node that has nothing to do. The runtime's containerd is not ours and is not
// counted.
func BenchmarkIdle(b *testing.B) {
	m := processes.New(b, 1)
	all := newMeter(b, m, mesh.Daemons...)
	all.settle()
	before := all.now()
	b.ResetTimer()
	time.Sleep(idleFor)
	b.StopTimer()
	after := all.now()
	total := 0.0
	for d, mib := range all.residentMiB() {
		b.ReportMetric(mib, fmt.Sprintf("%s-MiB", d))
		b.ReportMetric(100*(after[d]-before[d]).Seconds()/idleFor.Seconds(), fmt.Sprintf("%s-cpu-percent", d))
		total += mib
	}
	b.ReportMetric(total, "all-MiB")
	b.ReportMetric(100*(after.sum()-before.sum()).Seconds()/idleFor.Seconds(), "all-cpu-percent")
}
