package telemetry

import (
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	dto "github.com/prometheus/client_model/go"

	"keelson.dev/kit/contained"
)

// Metrics is what /metrics shows: the daemon's own registry and those of its libraries. Where two offer a family of one
// name, the one that was added first is shown. It is safe for concurrent use.
type Metrics struct {
	*prometheus.Registry

	mu     sync.RWMutex // guards others
	others []prometheus.Gatherer
}

// NewMetrics returns a registry with the Go and process collectors, the daemon's build, and its contained panics.
func NewMetrics(daemon, version string) *Metrics {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "keelson_build_info", Help: "Always 1; the labels tell the daemon and its version.",
		ConstLabels: prometheus.Labels{"daemon": daemon, "version": version},
	})
	build.Set(1)
	registry.MustRegister(build)
	registry.MustRegister(contained.Metrics()...)
	return &Metrics{Registry: registry}
}

// Include shows a library's metrics too.
func (m *Metrics) Include(g prometheus.Gatherer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.others = append(m.others, g)
}

// Gather implements prometheus.Gatherer. Families are sorted by name.
func (m *Metrics) Gather() ([]*dto.MetricFamily, error) {
	families, err := m.Registry.Gather()
	errs := []error{err}
	seen := map[string]bool{}
	for _, family := range families {
		seen[family.GetName()] = true
	}
	m.mu.RLock()
	others := slices.Clone(m.others)
	m.mu.RUnlock()
	for _, other := range others {
		more, err := other.Gather()
		errs = append(errs, err)
		for _, family := range more {
			if !seen[family.GetName()] {
				seen[family.GetName()] = true
				families = append(families, family)
			}
		}
	}
	slices.SortFunc(families, func(a, b *dto.MetricFamily) int { return strings.Compare(a.GetName(), b.GetName()) })
	return families, errors.Join(errs...)
}
