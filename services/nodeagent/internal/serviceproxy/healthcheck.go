package serviceproxy

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// healthServers answer load balancers that ask whether this node has endpoints of a Service.
type healthServers struct {
	log   *zap.Logger
	track *track
	wait  func(context.Context) bool
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
	// stop gives the addresses back.
	stop func()
}

func newHealthServers(log *zap.Logger, followed *track) *healthServers {
	return &healthServers{log: log, track: followed, wait: untilNextTry, servers: map[string]*healthServer{}}
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
		s = h.start(service, want.Port, addresses)
		h.servers[service] = s
	}
	s.local.Store(int64(want.Local))
}

func (h *healthServers) start(service string, port uint16, addresses []netip.Addr) *healthServer {
	s := &healthServer{track: h.track, port: port, addresses: addresses}
	s.namespace, s.name, _ = cutName(service)
	answers := answerer{h.log.With(zap.String("service", service)), s, h.wait}
	ctx, cancel := context.WithCancel(context.Background())
	var ended []<-chan struct{}
	for _, a := range addresses {
		ended = append(ended, answers.open(ctx, net.JoinHostPort(a.String(), strconv.Itoa(int(port)))))
	}
	s.stop = func() {
		cancel()
		for _, e := range ended {
			<-e
		}
	}
	return s
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
	w.Header().Set("X-Load-Balancing-Endpoint-Weight", strconv.FormatInt(answer.LocalEndpoints, 10))
	writeHead(w, answer.LocalEndpoints > 0 && answer.ServiceProxyHealthy)
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
