package requestbatch

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

var (
	batches = metrics.NewCounter(&metrics.CounterOpts{
		Name: "keelson_batches_total",
		Help: "Requests that brought many.",
	})
	batched = metrics.NewCounter(&metrics.CounterOpts{
		Name: "keelson_batched_requests_total",
		Help: "Requests that came in batches.",
	})
	omitted = metrics.NewCounter(&metrics.CounterOpts{
		Name: "keelson_batched_answers_omitted_total",
		Help: "Answers that were left out of those of their batch, for which there was no room.",
	})
)

// register shows the counters among the library's; servers in one process share them.
var register = sync.OnceFunc(func() { legacyregistry.MustRegister(batches, batched, omitted) })

func count(items int) {
	batches.Inc()
	batched.Add(float64(items))
}
