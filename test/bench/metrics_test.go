package bench

import (
	"fmt"
	"testing"

	dto "github.com/prometheus/client_model/go"

	"keelson.dev/kit/subprocess"
	"keelson.dev/test/mesh"
	"keelson.dev/test/mesh/processes"
	"keelson.dev/test/scenario"
)

// allocated is what a daemon has taken from the heap since its start, freed or not. Unlike CPU time it does not depend
// on the machine or on what else runs on it.
type allocated struct{ bytes, objects float64 }

// allocated asks each daemon.
func (m *meter) allocated() map[mesh.Daemon]allocated {
	m.tb.Helper()
	sum := map[mesh.Daemon]allocated{}
	for d, list := range m.daemons {
		for _, p := range list {
			families := scenario.MetricsOf(m.tb, m.mesh.Admin(), "https://"+statusAddress(p))
			a := sum[d]
			a.bytes += count(families, "go_memstats_alloc_bytes_total")
			a.objects += count(families, "go_memstats_mallocs_total")
			sum[d] = a
		}
	}
	return sum
}

// reportAllocated reports the allocations per unit between two readings, by daemon and in total.
func reportAllocated(b *testing.B, before, after map[mesh.Daemon]allocated, units int, unit string) {
	b.Helper()
	var all allocated
	report := func(who string, a allocated) {
		b.ReportMetric(a.bytes/1024/float64(units), fmt.Sprintf("%s-alloc-KiB/%s", who, unit))
		b.ReportMetric(a.objects/float64(units), fmt.Sprintf("%s-allocs/%s", who, unit))
	}
	for d := range after {
		a := allocated{after[d].bytes - before[d].bytes, after[d].objects - before[d].objects}
		report(string(d), a)
		all.bytes += a.bytes
		all.objects += a.objects
	}
	report("all", all)
}

// statusAddress is where a process that keel started shows its own metrics.
func statusAddress(p subprocess.Process) string { return processes.Argument(p, "--status-address") }

// count adds up a counter over all its labels but Leases.
func count(families map[string]*dto.MetricFamily, name string) float64 {
	sum := 0.0
	for _, m := range families[name].GetMetric() {
		if labelsOf(m)["resource"] != "leases" {
			sum += m.GetCounter().GetValue()
		}
	}
	return sum
}
