package app

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/nodeagent/internal/diskusage"
	"keelson.dev/services/nodeagent/internal/kubeletmetrics"
	"keelson.dev/services/nodeagent/internal/localvolume"
	"keelson.dev/services/nodeagent/internal/nodecertificates"
	"keelson.dev/services/nodeagent/internal/podworker"
	"keelson.dev/services/nodeagent/internal/probe"
	"keelson.dev/services/nodeagent/internal/review"
	"keelson.dev/services/nodeagent/internal/server"
	"keelson.dev/services/nodeagent/internal/stats"
	"keelson.dev/services/nodeagent/internal/tlsfiles"
	"keelson.dev/services/nodeagent/internal/volume/kinds"
)

// podsOf provides the pool's Pods to the node API.
type podsOf struct{ *podworker.Pool }

// Pod returns a Pod by name.
func (p podsOf) Pod(namespace, name string) (*corev1.Pod, bool) {
	view, ok := p.View(namespace, name)
	return view.Pod, ok
}

// running returns the Pods with their running instances, as their workers last saw them.
func (p podsOf) running() []stats.Pod {
	views := p.Views()
	all := make([]stats.Pod, 0, len(views))
	for _, view := range views {
		all = append(all, stats.Pod{Pod: view.Pod, Removed: view.Removed, Running: view.Containers})
	}
	return all
}

// newDisk creates the survey that measures the Pods' use of the disk.
func (a *agent) newDisk() *diskusage.Survey {
	return diskusage.NewSurvey(diskusage.SurveyConfig{Log: a.Log, Meter: a.diskMeter(), Pods: a.pool.Pods,
		Images: a.imageFs.ask, Folder: func(pod *corev1.Pod, v *corev1.Volume) (string, bool) {
			if kind, ok := kinds.Held(v); ok {
				return a.files.Volume(pod.UID, kind, v.Name), true
			}
			use, err := a.local.Begun(pod.UID, v.Name)
			return folderOf(use), err == nil && folderOf(use) != ""
		}})
}

// folderOf returns the folder that the node has created for a claim's volume; empty if the volume is none of these.
func folderOf(use *localvolume.Use) string {
	if use == nil || use.Handle == "" {
		return ""
	}
	return use.Path
}

// systemLogDir returns the machine's folder of logs; empty if they are not shown.
func (a *agent) systemLogDir() string {
	if !a.SystemLogs {
		return ""
	}
	return "/var/log"
}

// listen opens the port of the node API; both results are nil if it is switched off.
func (a *agent) listen() (net.Listener, *server.Server, error) {
	if a.Port == 0 {
		return nil, nil, nil
	}
	certificate, err := a.certificate()
	if err != nil {
		return nil, nil, err
	}
	clients, err := tlsfiles.Authorities("client-ca-file", a.ClientCAFile, a.Log)
	if err != nil {
		return nil, nil, err
	}
	figures := stats.NewCollector(stats.Config{
		NodeName: a.NodeName, Proc: "/proc", Sys: "/sys", Root: a.RootDir, Machine: a.facts.Info,
		MilliCPU: a.facts.MilliCPU, MaxPIDs: a.facts.MaxPIDs, Usage: a.cgroups, OwnCPUs: a.ownCPUs,
		Pods: podsOf{a.pool}.running, Disk: a.disk.Latest, DiskKnown: a.disk.Known,
		Drivers: a.volumeStats.Latest,
	})
	inForce, err := a.inForce(a.driver)
	if err != nil {
		return nil, nil, err
	}
	address := net.JoinHostPort(a.BindAddress, strconv.Itoa(a.Port))
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, nil, fmt.Errorf("--port: listening on %s: %w", address, err)
	}
	api := server.New(server.Config{
		Certificate: certificate,
		ClientCAs:   clients.Current,
		Pods:        podsOf{a.pool},
		Known:       a.known,
		Runtime:     a.runtime,
		Reviews: review.New(review.Config{Settings: a.Reviews, TokenReviews: a.client.AuthenticationV1().TokenReviews(),
			AccessReviews: a.client.AuthorizationV1().SubjectAccessReviews(), Log: a.Log, Node: a.NodeName}),
		LogDir:        a.LogsDir,
		SystemLogDir:  a.systemLogDir(),
		SyncLoop:      a.pool.SyncLoop,
		KeepStreams:   a.keepStreams,
		Service:       a.serviceReport,
		Summary:       figures.Summary,
		Resource:      figures.Resource(),
		CAdvisor:      figures.CAdvisor(),
		Probes:        probes(a.probes),
		Configuration: inForce,
		Metrics:       promhttp.HandlerFor(a.Metrics, promhttp.HandlerOpts{}),
		Log:           a.Log,
	})
	a.Metrics.MustRegister(api.Metrics()...)
	a.Metrics.MustRegister(kubeletmetrics.ServerLife(certificate))
	return listener, api, nil
}

// probes serves the metrics of probes.
func probes(p *probe.Prober) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(p.Metrics()...)
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
}

// certificate returns a function that returns the node API's certificate: the given one, the requested one, or the
// given one until the requested one arrives.
func (a *agent) certificate() (func() (*tls.Certificate, error), error) {
	var given func() *tls.Certificate
	if a.CertFile != "" {
		pair, err := tlsfiles.Pair("tls-cert-file", a.CertFile, a.KeyFile, a.Log)
		if err != nil {
			return nil, err
		}
		given = pair.Current
	}
	if !a.Certificates.RotateServer {
		return func() (*tls.Certificate, error) { return given(), nil }, nil
	}
	authorities, err := nodecertificates.Authorities(a.REST)
	if err != nil {
		return nil, err
	}
	a.serving, err = nodecertificates.NewServing(nodecertificates.ServingConfig{
		Dir: a.certificatesDir(), Node: a.NodeName, Client: a.client, Given: given, Log: a.Log,
		Addresses: func() []corev1.NodeAddress { return a.node.Current().Status.Addresses },
		Failed:    a.counts.renewals.Server, Authorities: authorities,
	})
	if err != nil {
		return nil, err
	}
	return a.serving.Certificate, nil
}
