package app

import (
	"keelson.dev/kit/events"
	"keelson.dev/services/nodeagent/internal/kubeletmetrics"
)

// counts are the agent's counters.
type counts struct {
	workers  *kubeletmetrics.Workers
	relists  *kubeletmetrics.Relists
	ousted   kubeletmetrics.Ousted
	renewals kubeletmetrics.RenewalErrors
	// credentials are the runs of credential providers.
	credentials *kubeletmetrics.CredentialProviders
}

func newCounts() counts {
	return counts{workers: kubeletmetrics.NewWorkers(), relists: kubeletmetrics.NewRelists(),
		ousted: kubeletmetrics.NewOusted(), renewals: kubeletmetrics.NewRenewalErrors(),
		credentials: kubeletmetrics.NewCredentialProviders()}
}

// registerMetrics registers the counters, and the metrics that are computed at each scrape.
func (a *agent) registerMetrics() {
	a.Metrics.MustRegister(events.Metrics()...)
	a.Metrics.MustRegister(a.counts.workers.Metrics()...)
	a.Metrics.MustRegister(a.counts.relists.Metrics()...)
	a.Metrics.MustRegister(a.counts.ousted.Metrics()...)
	a.Metrics.MustRegister(a.counts.renewals.Metrics()...)
	a.Metrics.MustRegister(a.counts.credentials.Metrics(a.credentials.Hash)...)
	a.Metrics.MustRegister(a.calls.Metrics()...)
	a.Metrics.MustRegister(
		kubeletmetrics.Node{Name: a.NodeName, Pods: a.pool.Views, Active: a.pool.Active, Static: a.static.Runs},
		kubeletmetrics.Volumes{Pods: a.pool.Pods, Disk: a.disk.Known, Drivers: a.volumeStats.Known},
		kubeletmetrics.ClientLife(a.REST))
}
