package watchstream

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

var (
	ended = metrics.NewCounterVec(&metrics.CounterOpts{
		Name: "keelson_watches_ended_total",
		Help: "Watches ended because as many events as may wait were waiting for the client.",
	}, []string{"group", "resource"})
	resumed = metrics.NewCounterVec(&metrics.CounterOpts{
		Name: "keelson_watches_resumed_total",
		Help: "Watches that the watch cache ended and that went on without their clients noticing.",
	}, []string{"group", "resource"})
)

// register shows the counters among the library's; servers in one process share them.
var register = sync.OnceFunc(func() { legacyregistry.MustRegister(ended, resumed) })
