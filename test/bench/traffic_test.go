package bench

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/kubernetes"
)

// traffic is what the apiserver has served since its start, by its own metrics.
type traffic struct {
	// writes are requests that change something, by verb, resource, subresource and answer. Renewals of Leases, which
	// the time causes and not the work, are left out.
	writes map[string]float64
	// events are those that watchers were sent.
	events float64
}

// readTraffic asks the apiserver.
func readTraffic(tb testing.TB, client kubernetes.Interface) traffic {
	tb.Helper()
	text, err := client.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(context.Background())
	if err != nil {
		tb.Fatalf("reading the apiserver's metrics: %v", err)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		tb.Fatalf("reading the apiserver's metrics: %v", err)
	}
	t := traffic{writes: map[string]float64{}}
	for _, m := range families["apiserver_request_total"].GetMetric() {
		l := labelsOf(m)
		if slices.Contains([]string{"POST", "PUT", "PATCH", "DELETE"}, l["verb"]) && l["resource"] != "leases" {
			name := strings.TrimSuffix(l["resource"]+"/"+l["subresource"], "/")
			t.writes[l["verb"]+" "+name+" "+l["code"]] += m.GetCounter().GetValue()
		}
	}
	for _, m := range families["apiserver_watch_events_total"].GetMetric() {
		if labelsOf(m)["resource"] != "leases" {
			t.events += m.GetCounter().GetValue()
		}
	}
	return t
}

func labelsOf(m *dto.Metric) map[string]string {
	labels := map[string]string{}
	for _, pair := range m.GetLabel() {
		labels[pair.GetName()] = pair.GetValue()
	}
	return labels
}

// report gives the writes and the watch events per unit since before, and logs what the writes were.
func (t traffic) report(b *testing.B, before traffic, units int, unit string) {
	b.Helper()
	writes := maps.Clone(t.writes)
	total := 0.0
	for what := range writes {
		writes[what] -= before.writes[what]
		total += writes[what]
	}
	b.ReportMetric(total/float64(units), "writes/"+unit)
	b.ReportMetric((t.events-before.events)/float64(units), "watch-events/"+unit)
	byCount := slices.SortedFunc(maps.Keys(writes), func(x, y string) int { return cmp.Compare(writes[y], writes[x]) })
	for _, what := range byCount {
		if share := writes[what] / float64(units); share >= 0.005 {
			b.Logf("%6.2f %s", share, what)
		}
	}
}
