package bench

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/rest"

	"keelson.dev/kit/subprocess"
	"keelson.dev/test/mesh"
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
			families := readMetrics(m.tb, m.mesh.Admin(), "https://"+statusAddress(p))
			a := sum[d]
			a.bytes += count(families, "go_memstats_alloc_bytes_total")
			a.objects += count(families, "go_memstats_mallocs_total")
			sum[d] = a
		}
	}
	return sum
}

// reportAllocated gives what was allocated per unit between two readings, by daemon and in all.
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
func statusAddress(p subprocess.Process) string { return argument(p, "--status-address") }

// argument is the value of a flag that a process was started with.
func argument(p subprocess.Process, name string) string {
	for _, arg := range p.Args {
		if value, ok := strings.CutPrefix(arg, name+"="); ok {
			return value
		}
	}
	return ""
}

// readMetrics asks a server of the mesh for its metrics, as the administrator.
func readMetrics(tb testing.TB, admin *rest.Config, host string) map[string]*dto.MetricFamily {
	tb.Helper()
	families, err := func() (map[string]*dto.MetricFamily, error) {
		transport, err := rest.TransportFor(admin)
		if err != nil {
			return nil, err
		}
		response, err := (&http.Client{Transport: transport}).Get(host + "/metrics")
		if err != nil {
			return nil, err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return nil, fmt.Errorf("the answer is %s", response.Status)
		}
		return parseMetrics(response.Body)
	}()
	if err != nil {
		tb.Fatalf("reading the metrics of %s: %v", host, err)
	}
	return families
}

func parseMetrics(text io.Reader) (map[string]*dto.MetricFamily, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(text)
}

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
