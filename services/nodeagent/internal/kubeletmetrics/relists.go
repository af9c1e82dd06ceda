package kubeletmetrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Relists counts the lists of everything that the runtime has. Create it with NewRelists.
type Relists struct {
	durations, intervals prometheus.Histogram
	seen                 prometheus.Gauge

	mu   sync.Mutex // guards last
	last time.Time
}

// NewRelists returns counters at 0.
func NewRelists() *Relists {
	return &Relists{
		durations: histogram("kubelet_pleg_relist_duration_seconds",
			"Duration in seconds for relisting pods in PLEG.", prometheus.DefBuckets),
		intervals: histogram("kubelet_pleg_relist_interval_seconds",
			"Interval in seconds between relisting in PLEG.", prometheus.DefBuckets),
		seen: prometheus.NewGauge(prometheus.GaugeOpts{Name: "kubelet_pleg_last_seen_seconds",
			Help: "Timestamp in seconds when PLEG was last seen active."}),
	}
}

// Metrics returns all counters.
func (r *Relists) Metrics() []prometheus.Collector {
	return []prometheus.Collector{r.durations, r.intervals, r.seen}
}

// Listed counts a list that began at a time and has just ended; ok means that the runtime answered.
func (r *Relists) Listed(began time.Time, ok bool) {
	now := time.Now()
	r.durations.Observe(now.Sub(began).Seconds())
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.last.IsZero() {
		r.intervals.Observe(began.Sub(r.last).Seconds())
	}
	r.last = began
	if ok {
		r.seen.Set(float64(began.Unix()))
	}
}
