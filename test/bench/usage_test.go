// Package bench measures what the daemons cost: CPU time per unit of work, and memory; and what does not depend on how
// busy the machine is: bytes and objects allocated, requests, store calls and watch events. Each benchmark starts a
// mesh of its own with an empty store, does a fixed amount of work once, and reports figures named
// "<daemon>-cpu-ms/<unit>"; package table turns them into docs/benchmarks.md.
package bench

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"keelson.dev/kit/subprocess"
	"keelson.dev/test/mesh"
	"keelson.dev/test/mesh/processes"
)

// usage is the CPU time that a set of daemons has used since their start.
type usage map[mesh.Daemon]time.Duration

// meter reads the daemons of one mesh.
type meter struct {
	tb      testing.TB
	mesh    mesh.Mesh
	daemons map[mesh.Daemon][]subprocess.Process
}

// reading is what the daemons of a meter have used and the apiserver has served.
type reading struct {
	usage
	allocated map[mesh.Daemon]allocated
	traffic
}

// newMeter measures the daemons of the mesh, or those named.
func newMeter(tb testing.TB, m *processes.Mesh, daemons ...mesh.Daemon) *meter {
	tb.Helper()
	read := &meter{tb: tb, mesh: m, daemons: map[mesh.Daemon][]subprocess.Process{}}
	for _, d := range daemons {
		read.daemons[d] = m.Of(tb, d)
	}
	return read
}

// start reads everything once the daemons are quiet, their CPU time last: being asked is not part of it.
func (m *meter) start() reading {
	m.tb.Helper()
	m.settle()
	r := reading{allocated: m.allocated(), traffic: readTraffic(m.tb, m.mesh)}
	r.usage = m.now()
	return r
}

// now returns the CPU time used so far.
func (m *meter) now() usage {
	m.tb.Helper()
	used := usage{}
	for d, list := range m.daemons {
		for _, p := range list {
			of, err := subprocess.UsageOf(p.PID)
			if err != nil {
				m.tb.Fatalf("reading the CPU time of %s: %v", p.Name, err)
			}
			used[d] += of.CPU
		}
	}
	return used
}

// memoryMiB returns the memory that each daemon holds now: VmRSS is all, RssAnon what is in no file.
func (m *meter) memoryMiB(field string) map[mesh.Daemon]float64 {
	m.tb.Helper()
	resident := map[mesh.Daemon]float64{}
	for d, list := range m.daemons {
		for _, p := range list {
			kib, err := statusKiB(p.PID, field)
			if err != nil {
				m.tb.Fatalf("reading the memory of %s: %v", p.Name, err)
			}
			resident[d] += float64(kib) / 1024
		}
	}
	return resident
}

// settle waits until the daemons together have used little CPU for a second, so that what went before is not counted.
func (m *meter) settle() {
	m.tb.Helper()
	last := m.now().sum()
	for range 60 {
		time.Sleep(time.Second)
		now := m.now().sum()
		if now-last < 80*time.Millisecond {
			return
		}
		last = now
	}
}

func (u usage) sum() time.Duration {
	var total time.Duration
	for _, used := range u {
		total += used
	}
	return total
}

// report reports the resources used and requests served per unit since before, by daemon and in total.
func (m *meter) report(b *testing.B, before reading, units int, unit string) {
	b.Helper()
	after := m.now()
	perUnit := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 / float64(units) }
	for d := range m.daemons {
		b.ReportMetric(perUnit(after[d]-before.usage[d]), fmt.Sprintf("%s-cpu-ms/%s", d, unit))
	}
	b.ReportMetric(perUnit(after.sum()-before.sum()), "all-cpu-ms/"+unit)
	reportAllocated(b, before.allocated, m.allocated(), units, unit)
	readTraffic(m.tb, m.mesh).report(b, before.traffic, units, unit)
}

func statusKiB(pid int, field string) (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			return strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
		}
	}
	return 0, fmt.Errorf("/proc/%d/status has no %s", pid, field)
}
