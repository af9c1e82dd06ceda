package bench

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"

	"keelson.dev/test/mesh"
	"keelson.dev/test/scenario"
)

// traffic is what the apiserver has served since its start, by its own metrics. Leases, which are renewed by the time
// and not by the work, are left out.
type traffic struct {
	// writes are requests that change something, by verb, resource, subresource and answer.
	writes map[string]float64
	// gets and lists are reads, of one object and of many; patches are those of the writes that are one.
	gets, lists, patches float64
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
	return trafficOf(scenario.MetricsOf(tb, config, config.Host))
}

// trafficOf reads the apiserver's metrics.
func trafficOf(families map[string]*dto.MetricFamily) traffic {
	t := traffic{writes: map[string]float64{}}
	for _, m := range families["apiserver_request_total"].GetMetric() {
		l, n := labelsOf(m), m.GetCounter().GetValue()
		if l["resource"] == "leases" {
			continue
		}
		switch verb := l["verb"]; verb {
		case "GET":
			t.gets += n
		case "LIST":
			t.lists += n
		case "PATCH":
			t.patches += n
			fallthrough
		case "POST", "PUT", "DELETE":
			name := strings.TrimSuffix(l["resource"]+"/"+l["subresource"], "/")
			t.writes[verb+" "+name+" "+l["code"]] += n
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
	b.ReportMetric((t.patches-before.patches)/float64(units), "patches/"+unit)
	b.ReportMetric((t.gets-before.gets)/float64(units), "gets/"+unit)
	b.ReportMetric((t.lists-before.lists)/float64(units), "lists/"+unit)
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

// Requests are counted separately: reads of one object, reads of many, and, among the writes, patches. Leases are
// not counted as work.
func TestTraffic(t *testing.T) {
	families, err := scenario.MetricFamilies(strings.NewReader(`# TYPE apiserver_request_total counter
apiserver_request_total{verb="GET",resource="pods",code="200"} 1
apiserver_request_total{verb="LIST",resource="pods",code="200"} 2
apiserver_request_total{verb="WATCH",resource="pods",code="200"} 4
apiserver_request_total{verb="POST",resource="pods",code="201"} 8
apiserver_request_total{verb="PATCH",resource="pods",subresource="status",code="200"} 16
apiserver_request_total{verb="PUT",resource="leases",code="200"} 32
apiserver_request_total{verb="GET",resource="leases",code="200"} 64
# TYPE apiserver_terminated_watchers_total counter
apiserver_terminated_watchers_total{resource="pods"} 3
`))
	if err != nil {
		t.Fatal(err)
	}
	got := trafficOf(families)
	if got.gets != 1 || got.lists != 2 || got.patches != 16 || got.terminations != 3 || got.statusWrites() != 16 ||
		!maps.Equal(got.writes, map[string]float64{"POST pods 201": 8, "PATCH pods/status 200": 16}) {
		t.Errorf("%+v", got)
	}
}
