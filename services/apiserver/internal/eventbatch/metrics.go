package eventbatch

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

var (
	batches = metrics.NewCounter(&metrics.CounterOpts{
		Name: "keelson_event_batches_total",
		Help: "Requests that brought many Events.",
	})
	batched = metrics.NewCounterVec(&metrics.CounterOpts{
		Name: "keelson_batched_events_total",
		Help: "Events that came in batches, by whether they are stored or refused.",
	}, []string{"result"})
)

// register shows the counters among the library's; servers in one process share them.
var register = sync.OnceFunc(func() { legacyregistry.MustRegister(batches, batched) })

func count(stored, refused int) {
	batches.Inc()
	batched.WithLabelValues("stored").Add(float64(stored))
	batched.WithLabelValues("refused").Add(float64(refused))
}
