package server

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// requests counts those of the node API, by the field's names.
type requests struct {
	all       *prometheus.CounterVec
	durations *prometheus.HistogramVec
	inFlight  *prometheus.GaugeVec
}

func newRequests() requests {
	labels := []string{"method", "path", "server_type", "long_running"}
	return requests{
		all: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "kubelet_http_requests_total",
			Help: "Number of the http requests received since the server started"}, labels),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "kubelet_http_requests_duration_seconds",
			Help: "Duration in seconds to serve http requests", Buckets: prometheus.DefBuckets}, labels),
		inFlight: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "kubelet_http_inflight_requests",
			Help: "Number of the inflight http requests"}, labels),
	}
}

// Metrics are the counters of requests.
func (s *Server) Metrics() []prometheus.Collector {
	return []prometheus.Collector{s.requests.all, s.requests.durations, s.requests.inFlight}
}

// count counts each request, those too that are not let through.
func (c requests) count(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		labels := requestLabels(r.Method, r.URL.Path)
		began, inFlight := time.Now(), c.inFlight.WithLabelValues(labels...)
		c.all.WithLabelValues(labels...).Inc()
		inFlight.Inc()
		defer func() {
			inFlight.Dec()
			c.durations.WithLabelValues(labels...).Observe(time.Since(began).Seconds())
		}()
		next.ServeHTTP(w, r)
	})
}

// counted are the first parts of paths by which requests are counted, beside those of subresources and acting; what
// comes after them would be a name or a number of the client's choice.
var counted = map[string]bool{"containerLogs": true, "serviceproxy": true}

// families are the paths below /metrics: each is counted by itself.
var families = map[string]bool{"metrics/resource": true, "metrics/probes": true, "metrics/cadvisor": true}

// requestLabels are a request's method, path, server_type and long_running. What nobody serves is "other", so that no
// client makes more labels than there are.
func requestLabels(method, path string) []string {
	const other = "other"
	if verbs[method] == "" {
		method = other
	}
	path = strings.TrimPrefix(path, "/")
	first, _, _ := strings.Cut(path, "/")
	_, known := subresources[first]
	switch {
	case families[path]:
		first = path
	case !known && !acting[first] && !counted[first]:
		first = other
	}
	return []string{method, first, "readwrite", strconv.FormatBool(acting[first])}
}
