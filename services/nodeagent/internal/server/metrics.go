package server

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// requests counts the requests to the node API, under the kubelet's metric names.
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

// Metrics returns the counters of requests.
func (s *Server) Metrics() []prometheus.Collector {
	return []prometheus.Collector{s.requests.all, s.requests.durations, s.requests.inFlight}
}

// count counts each request, also those that are rejected.
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

// counted are the first parts of paths by which requests are counted, besides those in subresources and acting; the
// client chooses the names and numbers after them.
var counted = map[string]bool{"containerLogs": true, "serviceproxy": true}

// families are the paths below /metrics: each is counted separately.
var families = map[string]bool{"metrics/resource": true, "metrics/probes": true, "metrics/cadvisor": true}

// requestLabels returns a request's method, path, server_type and long_running. An unknown method or path counts as
// "other", so that no client can create further labels.
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
