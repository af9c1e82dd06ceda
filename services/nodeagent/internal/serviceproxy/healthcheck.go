package serviceproxy

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"keelson.dev/kit/logging"
)

// healthServers answer load balancers that ask whether this node has endpoints of a Service.
type healthServers struct {
	log   *zap.Logger
	track *track
	mu    sync.Mutex // guards servers
	// servers are by Service.
	servers map[string]*healthServer
}

type healthServer struct {
	track           *track
	namespace, name string
	port            uint16
	addresses       []netip.Addr
	local           atomic.Int64
	stop            func()
}

func newHealthServers(log *zap.Logger, followed *track) *healthServers {
	return &healthServers{log: log, track: followed, servers: map[string]*healthServer{}}
}

// set says what a Service's server answers; nil ends it.
func (h *healthServers) set(service string, want *Health, addresses []netip.Addr) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.servers[service]
	if s != nil && (want == nil || s.port != want.Port || !slices.Equal(s.addresses, addresses)) {
		s.stop()
		delete(h.servers, service)
		s = nil
	}
	if want == nil {
		return
	}
	if s == nil {
		if s = h.start(service, want.Port, addresses); s == nil {
			return
		}
		h.servers[service] = s
	}
	s.local.Store(int64(want.Local))
}

// start returns nil if nothing can be listened on; the next change of the Service tries again.
func (h *healthServers) start(service string, port uint16, addresses []netip.Addr) *healthServer {
	s := &healthServer{track: h.track, port: port, addresses: addresses}
	s.namespace, s.name, _ = cutName(service)
	server := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second, ErrorLog: logging.ForHTTP(h.log)}
	listening := 0
	for _, a := range addresses {
		address := net.JoinHostPort(a.String(), strconv.Itoa(int(port)))
		listener, err := net.Listen("tcp", address)
		if err != nil {
			h.log.Warn("Service "+service+": spec.healthCheckNodePort: load balancers get no answer at "+address,
				zap.Error(err))
			continue
		}
		listening++
		go func() {
			if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
				h.log.Warn("Service "+service+": answering load balancers ended", zap.Error(err))
			}
		}()
	}
	s.stop = func() { _ = server.Shutdown(ended()) }
	if listening == 0 {
		return nil
	}
	return s
}

// ended is a context that waits for nobody.
func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// ServeHTTP answers 200 if the node has endpoints to which its rules lead, and 503 if not, with their number.
func (s *healthServer) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	var answer struct {
		Service struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
		} `json:"service"`
		LocalEndpoints      int64 `json:"localEndpoints"`
		ServiceProxyHealthy bool  `json:"serviceProxyHealthy"`
	}
	answer.Service.Namespace, answer.Service.Name = s.namespace, s.name
	answer.LocalEndpoints = s.local.Load()
	answer.ServiceProxyHealthy = s.track.stand(time.Now()).healthy
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("X-Load-Balancing-Endpoint-Weight", strconv.FormatInt(answer.LocalEndpoints, 10))
	if answer.LocalEndpoints == 0 || !answer.ServiceProxyHealthy {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(w).Encode(answer) // the client is gone
}

func (h *healthServers) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.servers {
		s.stop()
	}
	h.servers = map[string]*healthServer{}
}
