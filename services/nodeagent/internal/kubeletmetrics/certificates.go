package kubeletmetrics

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
)

// RenewalErrors counts the failed requests for the node's certificates.
type RenewalErrors struct{ Client, Server prometheus.Counter }

// NewRenewalErrors returns counters at 0.
func NewRenewalErrors() RenewalErrors {
	return RenewalErrors{
		Client: counter("kubelet_certificate_manager_client_expiration_renew_errors",
			"Counter of certificate renewal errors."),
		Server: counter("kubelet_server_expiration_renew_errors", "Counter of certificate renewal errors."),
	}
}

// Metrics returns all counters.
func (r RenewalErrors) Metrics() []prometheus.Collector {
	return []prometheus.Collector{r.Client, r.Server}
}

// ClientLife collects, at each scrape, how long the certificate with which the agent connects to the API remains
// valid.
func ClientLife(connection *rest.Config) prometheus.Collector {
	return life("kubelet_certificate_manager_client_ttl_seconds",
		"Gauge of the TTL (time-to-live) of the Kubelet's client certificate. The value is in seconds until "+
			"certificate expiry (negative if already expired). If client certificate is invalid or unused, the value "+
			"will be +INF.", func() (time.Time, error) { return clientEnd(connection) })
}

// ServerLife collects how long the certificate of the node API remains valid.
func ServerLife(shown func() (*tls.Certificate, error)) prometheus.Collector {
	return life("kubelet_certificate_manager_server_ttl_seconds",
		"Gauge of the shortest TTL (time-to-live) of the Kubelet's serving certificate. The value is in seconds until "+
			"certificate expiry (negative if already expired). If serving certificate is invalid or unused, the value "+
			"will be +INF.", func() (time.Time, error) { return serverEnd(shown) })
}

func life(name, help string, end func() (time.Time, error)) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 {
		at, err := end()
		if err != nil {
			return math.Inf(1)
		}
		return math.Trunc(time.Until(at).Seconds())
	})
}

var errNoCertificate = errors.New("there is no certificate")

// clientEnd reads the file each time: a renewal replaces it.
func clientEnd(connection *rest.Config) (time.Time, error) {
	pem := connection.CertData
	if len(pem) == 0 {
		if connection.CertFile == "" {
			return time.Time{}, errNoCertificate
		}
		var err error
		if pem, err = os.ReadFile(connection.CertFile); err != nil {
			return time.Time{}, err
		}
	}
	chain, err := cert.ParseCertsPEM(pem)
	if err != nil {
		return time.Time{}, err
	}
	return chain[0].NotAfter, nil
}

func serverEnd(shown func() (*tls.Certificate, error)) (time.Time, error) {
	pair, err := shown()
	if err != nil {
		return time.Time{}, err
	}
	if pair == nil || len(pair.Certificate) == 0 {
		return time.Time{}, errNoCertificate
	}
	if pair.Leaf != nil {
		return pair.Leaf.NotAfter, nil
	}
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return time.Time{}, err
	}
	return leaf.NotAfter, nil
}
