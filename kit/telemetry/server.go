// Package telemetry is a daemon's status address: one TLS listener for health, metrics, profiles and the introspection
// gRPC service.
package telemetry

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"google.golang.org/grpc"

	"keelson.dev/kit/connections"
	"keelson.dev/kit/contained"
)

// allowedGroups may read everything on the status address where client certificates are asked for.
var allowedGroups = []string{"system:masters", "system:monitoring"}

// stopTimeout bounds how long Serve waits for open requests.
const stopTimeout = 2 * time.Second

// Options say where and how to serve.
type Options struct {
	// Address is HOST:PORT; port 0 takes a free one; empty serves nothing.
	Address string
	// CertFile and KeyFile are PEM files; without them a self-signed certificate is made in memory.
	CertFile, KeyFile string
	// ClientCAFile is a PEM bundle. With it, everything but health asks for a client certificate of it whose
	// organization is system:masters or system:monitoring.
	ClientCAFile string
	// Profiling serves /debug/pprof/.
	Profiling bool
}

// Server serves the status address. Live, Ready, Metrics and GRPC may be added to before and while it serves.
type Server struct {
	Live, Ready Health
	Metrics     *Metrics
	GRPC        *grpc.Server

	options  Options
	listener net.Listener
}

// Listen binds the address, so that a port in use fails before the daemon does any work.
func Listen(o Options, metrics *Metrics) (*Server, error) {
	s := &Server{Metrics: metrics, GRPC: grpc.NewServer(containUnary, containStream), options: o}
	if o.Address == "" {
		return s, nil
	}
	config, err := tlsConfig(o)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", o.Address)
	if err != nil {
		return nil, fmt.Errorf("--status-address: listening on %s: %w", o.Address, err)
	}
	s.listener = tls.NewListener(connections.Bound(listener, connections.OfProcess()), config)
	return s, nil
}

// Address returns HOST:PORT of the listener, empty when nothing is served.
func (s *Server) Address() string {
	if s.listener == nil {
		return ""
	}
	return s.listener.Addr().String()
}

// Serve answers until ctx ends, then lets open requests finish for a moment.
func (s *Server) Serve(ctx context.Context) error {
	if s.listener == nil {
		<-ctx.Done()
		return nil
	}
	server := &http.Server{Handler: s.handler(), ReadHeaderTimeout: 10 * time.Second}
	server.Protocols = new(http.Protocols)
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetHTTP2(true)
	stopped := make(chan error, 1)
	stop := contained.AtEnd(ctx, "closing the status address", func() {
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		stopped <- server.Shutdown(grace)
	}, func(err error) { stopped <- err })
	defer stop()
	if err := server.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving the status address: %w", err)
	}
	if err := <-stopped; err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("closing the status address: %w", err)
	}
	return nil
}

func (s *Server) handler() http.Handler {
	guarded := http.NewServeMux()
	guarded.Handle("GET /metrics", promhttp.HandlerFor(s.Metrics,
		promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}))
	if s.options.Profiling {
		guarded.HandleFunc("/debug/pprof/", pprof.Index)
		guarded.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
		guarded.HandleFunc("/debug/pprof/profile", pprof.Profile)
		guarded.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		guarded.HandleFunc("/debug/pprof/trace", pprof.Trace)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /livez", &s.Live)
	mux.Handle("GET /readyz", &s.Ready)
	mux.Handle("/", s.guard(guarded))
	grpcHandler := s.guard(s.GRPC)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor == 2 && strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") {
			grpcHandler.ServeHTTP(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// guard lets only allowed client certificates through, where certificates are asked for at all.
func (s *Server) guard(next http.Handler) http.Handler {
	if s.options.ClientCAFile == "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !allowed(r.TLS) {
			http.Error(w, "a client certificate with organization "+strings.Join(allowedGroups, " or ")+" is needed",
				http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func allowed(state *tls.ConnectionState) bool {
	if state == nil || len(state.VerifiedChains) == 0 {
		return false
	}
	return slices.ContainsFunc(state.VerifiedChains[0][0].Subject.Organization, func(group string) bool {
		return slices.Contains(allowedGroups, group)
	})
}
