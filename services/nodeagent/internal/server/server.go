// Package server is the nodeagent's HTTPS API: what the API server asks a node for on behalf of a client (logs, exec,
// attach, port-forward), and what an operator may look at (Pods, statistics, metrics).
//
// Every request needs a client certificate of the cluster's CA, of the API server or of a member of system:masters.
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
	"slices"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"keelson.dev/kit/connections"
	"keelson.dev/kit/contained"
	"keelson.dev/kit/logging"
	"keelson.dev/services/nodeagent/internal/observed"
)

// Who may ask.
const (
	apiserverUser = "system:keelson:apiserver"
	mastersGroup  = "system:masters"
)

// Pods are the Pods of the node with their newest status. What is returned is never changed.
type Pods interface {
	Pod(namespace, name string) (*corev1.Pod, bool)
	Pods() []*corev1.Pod
}

// Runtime is what of a runtime.Runtime this package needs.
type Runtime interface {
	PodState(ctx context.Context, podUID string) (observed.Pod, error)
	ExecURL(ctx context.Context, request *cri.ExecRequest) (string, error)
	AttachURL(ctx context.Context, request *cri.AttachRequest) (string, error)
	PortForwardURL(ctx context.Context, request *cri.PortForwardRequest) (string, error)
}

// Config is what a Server needs.
type Config struct {
	// Certificate is shown to clients; ClientCAs have signed theirs.
	Certificate tls.Certificate
	ClientCAs   *x509.CertPool
	Pods        Pods
	// Known is closed when all Pods of the node are known.
	Known   <-chan struct{}
	Runtime Runtime
	// KeepStreams has no Pod answer at an address at which the runtime is about to be asked for a session. An error
	// says that one may, so that the session must not be.
	KeepStreams func(at netip.AddrPort) error
	// LogDir is the folder below which all logs of containers lie.
	LogDir string
	// Summary returns the statistics of the node; Resource serves /metrics/resource, Metrics the agent's own /metrics.
	Summary           func(ctx context.Context, onlyCPUAndMemory bool) (*statsapi.Summary, error)
	Resource, Metrics http.Handler
	// Service says what the node's kernel has for a Service; false if the agent carries none.
	Service func(namespace, name string) (any, bool)
	Log     *zap.Logger
}

// Server answers requests. Make it with New.
type Server struct {
	config      Config
	http        *http.Server
	connections *connections.Listener
}

// knownTime is how long a request for a Pod waits until all are known.
const knownTime = 10 * time.Second

// shutdownTime is how long running requests get at the end.
const shutdownTime = 5 * time.Second

// New makes a server that does not listen yet.
func New(config Config) *Server {
	s := &Server{config: config}
	s.http = &http.Server{
		Handler:           s.authorize(s.routes()),
		ReadHeaderTimeout: 30 * time.Second,
		ErrorLog:          logging.ForHTTP(config.Log),
		TLSConfig: &tls.Config{
			MinVersion:   tls.VersionTLS12,
			Certificates: []tls.Certificate{config.Certificate},
			ClientAuth:   tls.RequireAndVerifyClientCert,
			ClientCAs:    config.ClientCAs,
		},
	}
	return s
}

// Serve answers requests on the listener until ctx ends, and closes it. It returns nil after an ordered end.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	s.http.BaseContext = func(net.Listener) context.Context { return ctx }
	stopped := make(chan error, 1)
	stop := contained.AtEnd(ctx, "ending the node API", func() {
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
		defer cancel()
		stopped <- s.http.Shutdown(grace)
	}, func(err error) { stopped <- err })
	s.connections = connections.Bound(listener, connections.OfProcess())
	err := s.http.ServeTLS(s.connections, "", "")
	if stop() { // ended before ctx did
		return fmt.Errorf("serving the node API: %w", err)
	}
	if err := <-stopped; err != nil {
		return errors.Join(fmt.Errorf("ending the node API: %w", err), s.http.Close())
	}
	return nil
}

// routes is the whole API.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /healthz", answer(func(w http.ResponseWriter, _ *http.Request) error {
		_, err := w.Write([]byte("ok"))
		return err
	}))
	mux.Handle("GET /pods", answer(s.pods))
	mux.Handle("GET /stats/summary", answer(s.summary))
	mux.Handle("GET /metrics/resource", s.config.Resource)
	if s.config.Metrics != nil {
		mux.Handle("GET /metrics", s.config.Metrics)
	}
	mux.Handle("GET /serviceproxy/{namespace}/{name}", answer(s.service))
	mux.Handle("GET /containerLogs/{namespace}/{pod}/{container}", answer(s.logs))
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		mux.Handle(method+" /exec/{namespace}/{pod}/{container}", answer(s.exec))
		mux.Handle(method+" /attach/{namespace}/{pod}/{container}", answer(s.attach))
		mux.Handle(method+" /portForward/{namespace}/{pod}", answer(s.portForward))
	}
	return mux
}

// authorize lets only the API server and masters through. TLS has verified the certificate.
func (s *Server) authorize(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
			http.Error(w, "a client certificate is required", http.StatusUnauthorized)
			return
		}
		subject := r.TLS.PeerCertificates[0].Subject
		if subject.CommonName != apiserverUser && !slices.Contains(subject.Organization, mastersGroup) {
			http.Error(w, fmt.Sprintf("user %q may not use the node API: only %s and members of %s may",
				subject.CommonName, apiserverUser, mastersGroup), http.StatusForbidden)
			return
		}
		s.connections.Known(r, subject.CommonName)
		next.ServeHTTP(w, r)
	})
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

// answer turns the error of a handler into the response. A handler that has begun to answer returns nil.
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
		http.Error(w, err.Error(), code)
	})
}

// pod finds the Pod that a path names. An agent that has just started takes its Pods in one after the other.
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

func (s *Server) pods(w http.ResponseWriter, _ *http.Request) error {
	list := corev1.PodList{Items: []corev1.Pod{}}
	list.Kind, list.APIVersion = "PodList", "v1"
	for _, pod := range s.config.Pods.Pods() {
		list.Items = append(list.Items, *pod)
	}
	return writeJSON(w, list)
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
