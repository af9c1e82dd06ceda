package health

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"keelson.dev/services/nodeagent/internal/serviceproxy/plan"
)

// NodePorts are the health check node ports of Services: they answer load balancers that ask whether this node has
// endpoints of a Service. One goroutine at a time uses them.
type NodePorts struct {
	log       *zap.Logger
	freshness *Freshness
	wait      func(context.Context) bool
	open      map[string]*nodePort // by Service
}

type nodePort struct {
	port      uint16
	addresses []netip.Addr
	answers   *ServiceHandler
	// stop releases the addresses.
	stop func()
}

// NewNodePorts opens none yet.
func NewNodePorts(log *zap.Logger, f *Freshness) *NodePorts {
	return &NodePorts{log: log, freshness: f, wait: untilNextTry, open: map[string]*nodePort{}}
}

// Set sets the answer for a Service at the node's addresses; nil closes its port.
func (n *NodePorts) Set(service string, want *plan.HealthCheck, addresses []netip.Addr) {
	p := n.open[service]
	if p != nil && (want == nil || p.port != want.NodePort || !slices.Equal(p.addresses, addresses)) {
		p.stop()
		delete(n.open, service)
		p = nil
	}
	if want == nil {
		return
	}
	if p == nil {
		p = n.start(service, want.NodePort, addresses)
		n.open[service] = p
	}
	p.answers.SetReadyEndpoints(want.ReadyEndpoints)
}

func (n *NodePorts) start(service string, port uint16, addresses []netip.Addr) *nodePort {
	p := &nodePort{port: port, addresses: addresses, answers: NewServiceHandler(service, n.freshness)}
	answers := listener{n.log.With(zap.String("service", service)), p.answers, n.wait}
	ctx, cancel := context.WithCancel(context.Background())
	var ended []<-chan struct{}
	for _, a := range addresses {
		ended = append(ended, answers.open(ctx, net.JoinHostPort(a.String(), strconv.Itoa(int(port)))))
	}
	p.stop = func() {
		cancel()
		for _, e := range ended {
			<-e
		}
	}
	return p
}

// Close releases all ports.
func (n *NodePorts) Close() {
	for _, p := range n.open {
		p.stop()
	}
	n.open = map[string]*nodePort{}
}

// ServiceHandler answers for one Service.
type ServiceHandler struct {
	freshness       *Freshness
	namespace, name string
	readyEndpoints  atomic.Int64
}

// NewServiceHandler returns a handler for a Service, named NAMESPACE/NAME, that has no endpoints yet.
func NewServiceHandler(service string, f *Freshness) *ServiceHandler {
	h := &ServiceHandler{freshness: f}
	h.namespace, h.name, _ = strings.Cut(service, "/")
	return h
}

// SetReadyEndpoints sets how many ready endpoints of the Service this node has.
func (h *ServiceHandler) SetReadyEndpoints(n int) { h.readyEndpoints.Store(int64(n)) }

// ServeHTTP answers 200 if the node has endpoints and its rules are up to date, else 503, with the number of
// endpoints.
func (h *ServiceHandler) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	var answer struct {
		Service struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
		} `json:"service"`
		LocalEndpoints      int64 `json:"localEndpoints"`
		ServiceProxyHealthy bool  `json:"serviceProxyHealthy"`
	}
	answer.Service.Namespace, answer.Service.Name = h.namespace, h.name
	answer.LocalEndpoints = h.readyEndpoints.Load()
	answer.ServiceProxyHealthy = h.freshness.judge(time.Now()).healthy
	w.Header().Set("X-Load-Balancing-Endpoint-Weight", strconv.FormatInt(answer.LocalEndpoints, 10))
	writeHead(w, answer.LocalEndpoints > 0 && answer.ServiceProxyHealthy)
	_ = json.NewEncoder(w).Encode(answer) // the client has gone
}
