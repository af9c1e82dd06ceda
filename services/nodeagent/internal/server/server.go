// Package server is the nodeagent's HTTPS API: what the API server asks a node for on behalf of a client (logs,
// exec, attach, port-forward), and what operators and their tools may see (Pods, statistics, metrics, logs of the
// machine).
//
// A client shows a certificate of the cluster's CA or a bearer token. The certificates of the API server and of
// members of system:masters allow everything; for all other users the API server is asked (package review).
package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"keelson.dev/kit/connections"
	"keelson.dev/kit/contained"
	"keelson.dev/kit/logging"
	"keelson.dev/services/nodeagent/internal/observed"
	"keelson.dev/services/nodeagent/internal/review"
)

// Pods are the Pods of the node with their newest status. The returned objects never change.
type Pods interface {
	Pod(namespace, name string) (*corev1.Pod, bool)
	Pods() []*corev1.Pod
}

// Runtime is the part of runtime.Runtime that this package needs.
type Runtime interface {
	ListPods(ctx context.Context) ([]observed.Pod, error)
	PodState(ctx context.Context, podUID string) (observed.Pod, error)
	ExecURL(ctx context.Context, request *cri.ExecRequest) (string, error)
	AttachURL(ctx context.Context, request *cri.AttachRequest) (string, error)
	PortForwardURL(ctx context.Context, request *cri.PortForwardRequest) (string, error)
}

// Config is what a Server needs.
type Config struct {
	// Certificate returns the server certificate, or why the node cannot serve yet; ClientCAs returns the authorities
	// of clients' certificates. They are called in each handshake.
	Certificate func() (*tls.Certificate, error)
	ClientCAs   func() *x509.CertPool
	// Reviews returns the user of a token, and what a user may do.
	Reviews *review.Reviewer
	Pods    Pods
	// Known is closed when all Pods of the node are known.
	Known   <-chan struct{}
	Runtime Runtime
	// KeepStreams keeps Pods from listening at an address at which the runtime is about to serve a session. An error
	// means that a Pod may listen there, so that the session must not begin.
	KeepStreams func(at netip.AddrPort) error
	// LogDir is the folder that contains all logs of containers.
	LogDir string
	// SystemLogDir is the folder of the machine's logs; if empty, they are not shown.
	SystemLogDir string
	// SyncLoop returns an error if Pods are no longer synced.
	SyncLoop func() error
	// Summary returns the statistics of the node; Resource, CAdvisor and Probes serve the paths below /metrics,
	// Metrics the agent's own metrics.
	Summary                             func(ctx context.Context, onlyCPUAndMemory bool) (*statsapi.Summary, error)
	Resource, CAdvisor, Probes, Metrics http.Handler
	// Configuration is the agent's configuration.
	Configuration *kubeletv1beta1.KubeletConfiguration
	// Service returns what the node's kernel has for a Service; false if the agent carries no Services.
	Service func(namespace, name string) (any, bool)
	Log     *zap.Logger
}

// Server answers requests. Create it with New.
type Server struct {
	config      Config
	http        *http.Server
	connections *connections.Listener
	requests    requests
}

// knownTime is how long a request for a Pod waits until all Pods are known.
const knownTime = 10 * time.Second

// shutdownTime is how long running requests may take at the end.
const shutdownTime = 5 * time.Second

// idleTime is how long a connection may stay without a request.
const idleTime = 90 * time.Second

// New returns a server that does not listen yet. It speaks only HTTP/1.1, so that the bound on connections also
// bounds concurrent requests.
func New(config Config) *Server {
	s := &Server{config: config, requests: newRequests()}
	s.http = &http.Server{
		Handler:           s.requests.count(s.authorize(s.routes())),
		Protocols:         new(http.Protocols),
		ReadHeaderTimeout: 30 * time.Second,
		IdleTimeout:       idleTime,
		ErrorLog:          logging.ForHTTP(config.Log),
		ConnState:         renew,
		TLSConfig: &tls.Config{
			MinVersion:     tls.VersionTLS12,
			NextProtos:     []string{"http/1.1"},
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return config.Certificate() },
			ClientAuth:     tls.VerifyClientCertIfGiven,
		},
	}
	s.http.Protocols.SetHTTP1(true)
	admit(s.http.TLSConfig, config.ClientCAs)
	return s
}

// Serve answers requests on the listener until ctx ends, and closes it. It returns nil after an orderly end.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	s.http.BaseContext = func(net.Listener) context.Context { return ctx }
	stopped := make(chan error, 1)
	stop := contained.AtEnd(ctx, "ending the node API", func() {
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
		defer cancel()
		stopped <- s.http.Shutdown(grace)
	}, func(err error) { stopped <- err })
	s.connections = connections.Bound(listener, connections.OfProcess())
	err := s.http.ServeTLS(narrowListener{s.connections}, "", "")
	if stop() { // ended before ctx did
		return fmt.Errorf("serving the node API: %w", err)
	}
	if err := <-stopped; err != nil {
		return errors.Join(fmt.Errorf("ending the node API: %w", err), s.http.Close())
	}
	return nil
}

// routes returns the handler of the whole API.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	for _, path := range []string{"/healthz", "/healthz/syncloop"} {
		mux.Handle("GET "+path, answer(s.healthz))
	}
	mux.Handle("GET /healthz/ping", answer(healthy))
	mux.Handle("GET /pods", answer(s.pods))
	mux.Handle("GET /runningpods/{$}", answer(s.runningPods))
	mux.Handle("GET /logs/{path...}", answer(s.systemLogs))
	mux.Handle("GET /configz", answer(s.configz))
	mux.Handle("GET /stats/summary", answer(s.summary))
	mux.Handle("GET /metrics/resource", s.config.Resource)
	mux.Handle("GET /metrics/cadvisor", s.config.CAdvisor)
	mux.Handle("GET /metrics/probes", s.config.Probes)
	mux.Handle("GET /metrics", s.config.Metrics)
	mux.Handle("GET /serviceproxy/{namespace}/{name}", answer(s.service))
	mux.Handle("GET /containerLogs/{namespace}/{pod}/{container}", answer(s.logs))
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		mux.Handle(method+" /exec/{namespace}/{pod}/{container}", answer(s.exec))
		mux.Handle(method+" /attach/{namespace}/{pod}/{container}", answer(s.attach))
		mux.Handle(method+" /portForward/{namespace}/{pod}", answer(s.portForward))
	}
	return mux
}

// statusError is an error with the status code that a client gets.
type statusError struct {
	code    int
	message string
}

func (e *statusError) Error() string { return e.message }

func badRequest(format string, args ...any) error {
	return &statusError{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}

func notFound(format string, args ...any) error {
	return &statusError{http.StatusNotFound, fmt.Sprintf(format, args...)}
}

// answer turns the error of a handler into the response. A handler that has begun to answer must return nil.
func answer(handler func(http.ResponseWriter, *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := handler(w, r)
		if err == nil {
			return
		}
		code := http.StatusInternalServerError
		if status := (*statusError)(nil); errors.As(err, &status) {
			code = status.code
		}
		switch code {
		case http.StatusUnauthorized:
			w.Header().Set("WWW-Authenticate", "Bearer")
		case http.StatusTooManyRequests:
			w.Header().Set("Retry-After", "1")
		}
		http.Error(w, err.Error(), code)
	})
}

// pod returns the Pod that a path names. It waits for an agent that has just started to learn of its Pods.
func (s *Server) pod(r *http.Request) (*corev1.Pod, error) {
	namespace, name := r.PathValue("namespace"), r.PathValue("pod")
	if pod, ok := s.config.Pods.Pod(namespace, name); ok {
		return pod, nil
	}
	wait, cancel := context.WithTimeout(r.Context(), knownTime)
	defer cancel()
	select {
	case <-s.config.Known:
	case <-wait.Done():
		return nil, &statusError{http.StatusServiceUnavailable, fmt.Sprintf(
			"this node's agent has just started and does not know pod %s/%s yet: try again", namespace, name)}
	}
	if pod, ok := s.config.Pods.Pod(namespace, name); ok {
		return pod, nil
	}
	return nil, notFound("pod %s/%s is not on this node", namespace, name)
}

// observe asks the runtime what it has of a Pod.
func (s *Server) observe(ctx context.Context, pod *corev1.Pod) (observed.Pod, error) {
	has, err := s.config.Runtime.PodState(ctx, string(pod.UID))
	if err != nil {
		return observed.Pod{}, fmt.Errorf("asking the runtime for the pod: %w", err)
	}
	return has, nil
}

// healthz reports whether the agent works.
func (s *Server) healthz(w http.ResponseWriter, r *http.Request) error {
	if err := s.config.SyncLoop(); err != nil {
		return err
	}
	return healthy(w, r)
}

func healthy(w http.ResponseWriter, _ *http.Request) error {
	_, err := w.Write([]byte("ok"))
	return err
}

// runningPods lists what the runtime runs, regardless of the API.
func (s *Server) runningPods(w http.ResponseWriter, r *http.Request) error {
	has, err := s.config.Runtime.ListPods(r.Context())
	if err != nil {
		return fmt.Errorf("asking the runtime for its pods: %w", err)
	}
	return writeJSON(w, runningPods(has))
}

func (s *Server) pods(w http.ResponseWriter, _ *http.Request) error {
	list := corev1.PodList{Items: []corev1.Pod{}}
	list.Kind, list.APIVersion = "PodList", "v1"
	for _, pod := range s.config.Pods.Pods() {
		list.Items = append(list.Items, *pod)
	}
	return writeJSON(w, list)
}

// configz shows the configuration under the name that the kubelet uses.
func (s *Server) configz(w http.ResponseWriter, _ *http.Request) error {
	return writeJSON(w, map[string]any{"kubeletconfig": s.config.Configuration})
}

func (s *Server) summary(w http.ResponseWriter, r *http.Request) error {
	only := false
	if err := parseFlag(r.URL.Query(), "only_cpu_and_memory", &only); err != nil {
		return err
	}
	summary, err := s.config.Summary(r.Context(), only)
	if err != nil {
		return err
	}
	return writeJSON(w, summary)
}

func (s *Server) service(w http.ResponseWriter, r *http.Request) error {
	if s.config.Service != nil {
		if report, ok := s.config.Service(r.PathValue("namespace"), r.PathValue("name")); ok {
			return writeJSON(w, report)
		}
	}
	return notFound("this nodeagent does not carry the traffic of Services (--service-proxy=none)")
}

func writeJSON(w http.ResponseWriter, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encoding the answer: %w", err)
	}
	w.Header().Set("Content-Type", "application/json")
	_, err = w.Write(data)
	return err
}
