package bench

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"

	"keelson.dev/test/mesh"
)

// traffic is what the apiserver has served since its start, by its own metrics. Leases, which are renewed by the time
// and not by the work, are left out.
type traffic struct {
	// writes are requests that change something, by verb, resource, subresource and answer.
	writes map[string]float64
	// events are those that watchers were sent; replayed is how many of them a watch began with, which had been sent
	// before to a watcher that was ended and came back, or are what there was when a new one came.
	events, replayed float64
	// terminations are watches that were ended because their clients did not keep up.
	terminations float64
	// storeCalls are requests to the store.
	storeCalls float64
}

// readTraffic asks the apiserver.
func readTraffic(tb testing.TB, m mesh.Mesh) traffic {
	tb.Helper()
	config := m.Admin()
	families := readMetrics(tb, config, config.Host)
	t := traffic{writes: map[string]float64{}}
	for _, m := range families["apiserver_request_total"].GetMetric() {
		l := labelsOf(m)
		if slices.Contains([]string{"POST", "PUT", "PATCH", "DELETE"}, l["verb"]) && l["resource"] != "leases" {
			name := strings.TrimSuffix(l["resource"]+"/"+l["subresource"], "/")
			t.writes[l["verb"]+" "+name+" "+l["code"]] += m.GetCounter().GetValue()
		}
	}
	t.events = count(families, "apiserver_watch_events_total")
	t.replayed = count(families, "apiserver_init_events_total")
	t.terminations = count(families, "apiserver_terminated_watchers_total")
	t.storeCalls = count(families, "etcd_requests_total")
	return t
}

// statusWrites is how often the status of a Pod was written, or tried to be.
func (t traffic) statusWrites() (sum float64) {
	for what, n := range t.writes {
		if strings.Contains(what, " pods/status ") {
			sum += n
		}
	}
	return sum
}

func labelsOf(m *dto.Metric) map[string]string {
	labels := map[string]string{}
	for _, pair := range m.GetLabel() {
		labels[pair.GetName()] = pair.GetValue()
	}
	return labels
}

// report gives requests, store calls and watch events per unit since before, and logs what the writes were.
func (t traffic) report(b *testing.B, before traffic, units int, unit string) {
	b.Helper()
	writes := maps.Clone(t.writes)
	total := 0.0
	for what := range writes {
		writes[what] -= before.writes[what]
		total += writes[what]
	}
	b.ReportMetric(total/float64(units), "writes/"+unit)
	b.ReportMetric((t.storeCalls-before.storeCalls)/float64(units), "store-calls/"+unit)
	b.ReportMetric((t.events-before.events)/float64(units), "watch-events/"+unit)
	b.ReportMetric((t.replayed-before.replayed)/float64(units), "replayed-events/"+unit)
	b.ReportMetric(t.terminations-before.terminations, "terminated-watches")
	byCount := slices.SortedFunc(maps.Keys(writes), func(x, y string) int { return cmp.Compare(writes[y], writes[x]) })
	for _, what := range byCount {
		if share := writes[what] / float64(units); share >= 0.005 {
			b.Logf("%6.2f %s", share, what)
		}
	}
}
