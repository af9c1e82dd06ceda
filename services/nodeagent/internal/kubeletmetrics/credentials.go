package kubeletmetrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// CredentialProviders counts the runs of programs that provide credentials for images. Create it with
// NewCredentialProviders.
type CredentialProviders struct {
	durations *prometheus.HistogramVec
	errors    *prometheus.CounterVec
}

// NewCredentialProviders returns counters at 0.
func NewCredentialProviders() *CredentialProviders {
	return &CredentialProviders{
		durations: histograms("kubelet_credential_provider_plugin_duration",
			"Duration of execution in seconds for credential provider plugin", prometheus.DefBuckets, "plugin_name"),
		errors: counters("kubelet_credential_provider_plugin_errors_total",
			"Number of errors from credential provider plugin", "plugin_name"),
	}
}

// Metrics returns all counters, and the hash of the configuration if there is one.
func (c *CredentialProviders) Metrics(hash string) []prometheus.Collector {
	all := []prometheus.Collector{c.durations, c.errors}
	if hash == "" {
		return all
	}
	info := prometheus.NewGauge(prometheus.GaugeOpts{Name: "kubelet_credential_provider_config_info",
		Help:        "Information about the last applied credential provider configuration with hash as label",
		ConstLabels: prometheus.Labels{"hash": hash}})
	info.Set(1)
	return append(all, info)
}

// PluginRan implements credentialprovider.Observer.
func (c *CredentialProviders) PluginRan(plugin string, took time.Duration, ok bool) {
	c.durations.WithLabelValues(plugin).Observe(took.Seconds())
	if !ok {
		c.errors.WithLabelValues(plugin).Inc()
	}
}
