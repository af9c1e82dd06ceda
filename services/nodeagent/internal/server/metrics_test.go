package server

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// Requests are counted by what they request, admitted or not; all invented paths count as one.
func TestRequestsAreCounted(t *testing.T) {
	n := newNode(t)
	registry := prometheus.NewRegistry()
	registry.MustRegister(n.server.Metrics()...)
	for _, request := range []struct{ method, path string }{
		{"GET", "/pods"}, {"GET", "/metrics"}, {"GET", "/metrics/resource"}, {"GET", "/metrics/made/up"},
		{"GET", "/healthz/syncloop"}, {"POST", "/exec/ns/web/app"}, {"GET", "/containerLogs/ns/web/app"},
		{"GET", "/made-up"}, {"GET", "/"}, {"MADEUP", "/made-up-too"},
	} {
		if _, _, err := n.ask(request.method, request.path, nil, n.client("nobody")); err != nil {
			t.Fatal(err)
		}
	}
	if code, _, err := n.ask(http.MethodGet, "/pods", nil); code != http.StatusUnauthorized || err != nil {
		t.Fatalf("without a certificate: %d, %v", code, err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			var labels []string
			for _, label := range metric.GetLabel() {
				labels = append(labels, label.GetName()+"="+label.GetValue())
			}
			value := metric.GetCounter().GetValue() + metric.GetGauge().GetValue() +
				float64(metric.GetHistogram().GetSampleCount())
			for range int(value) {
				got[family.GetName()] = append(got[family.GetName()], strings.Join(labels, " "))
			}
		}
	}
	want := []string{
		"long_running=false method=GET path=containerLogs server_type=readwrite",
		"long_running=false method=GET path=healthz server_type=readwrite",
		"long_running=false method=GET path=metrics server_type=readwrite",
		"long_running=false method=GET path=metrics server_type=readwrite",
		"long_running=false method=GET path=metrics/resource server_type=readwrite",
		"long_running=false method=GET path=other server_type=readwrite",
		"long_running=false method=GET path=other server_type=readwrite",
		"long_running=false method=GET path=pods server_type=readwrite",
		"long_running=false method=GET path=pods server_type=readwrite",
		"long_running=false method=other path=other server_type=readwrite",
		"long_running=true method=POST path=exec server_type=readwrite",
	}
	for _, name := range []string{"kubelet_http_requests_total", "kubelet_http_requests_duration_seconds"} {
		if !slices.Equal(got[name], want) {
			t.Errorf("%s:\n%s\nwant\n%s", name, strings.Join(got[name], "\n"), strings.Join(want, "\n"))
		}
	}
	if under := got["kubelet_http_inflight_requests"]; len(under) > 0 {
		t.Errorf("under way: %q", under)
	}
}
