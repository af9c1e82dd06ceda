// Package serviceproxy carries the traffic of Services on one node: it keeps a firewall table of the kernel in line
// with Services and EndpointSlices.
//
// It follows the objects and passes them on: package plan decides what a node does for a Service, table computes
// what has changed in the kernel for all Services together, kernel writes all changes of one moment in one
// transaction, and health answers load balancers. Callers of this package never wait for the kernel.
package serviceproxy

import (
	"context"
	"net/netip"
	"reflect"
	"sync"
	"time"

	"go.uber.org/zap"
	"k8s.io/client-go/tools/cache"

	"keelson.dev/kit/wakeup"
	"keelson.dev/services/nodeagent/internal/conntrack"
	"keelson.dev/services/nodeagent/internal/serviceproxy/health"
	"keelson.dev/services/nodeagent/internal/serviceproxy/kernel"
	"keelson.dev/services/nodeagent/internal/serviceproxy/plan"
	"keelson.dev/services/nodeagent/internal/serviceproxy/table"
)

// Config is what a Proxy needs.
type Config struct {
	// Table is the name of the firewall table; only this agent uses it.
	Table string
	// Services are all Services; Slices all EndpointSlices, see Indexers.
	Services, Slices cache.SharedIndexInformer
	// Nodes are all Nodes.
	Nodes cache.SharedIndexInformer
	// Conntrack are the connection tracking settings.
	Conntrack conntrack.Settings
	Log       *zap.Logger
}

const (
	// gatherFor is how long changes are gathered for one transaction.
	gatherFor = 10 * time.Millisecond
	// verifyEvery is how often the proxy checks that its table is unchanged.
	verifyEvery = 30 * time.Second
	// retryAfter is how long after a failed transaction the next one is tried.
	retryAfter = 2 * time.Second
)

// Proxy carries the Services' traffic. Create it with New.
type Proxy struct {
	Config
	metrics   *metrics
	freshness *health.Freshness
	wake      wakeup.Signal

	// Only Sync and verifyTable, which Run calls in turn, use these.
	kernel    *kernel.Table
	nodePorts *health.NodePorts

	mu sync.Mutex // guards all fields below; never held during calls to the kernel
	// node is nil until it is known.
	node  *plan.Node
	peers plan.Peers
	// apiServers are the API servers' addresses, as the last Sync found them.
	apiServers []netip.AddrPort
	pending    pending
	// owners map slices to their Services: a slice may pass from one to another.
	owners map[string]string
	state  *table.State
	// programmed is since when the kernel has the current rules of a Service.
	programmed map[string]time.Time
	// reported are the problems of each Service that were logged.
	reported map[string][]string
	failure  error
}

// New returns a proxy that does nothing before Run.
func New(c Config) *Proxy {
	freshness := &health.Freshness{}
	p := &Proxy{
		Config: c, metrics: newMetrics(), freshness: freshness, wake: wakeup.New(),
		kernel: kernel.NewTable(c.Table), nodePorts: health.NewNodePorts(c.Log, freshness),
		owners: map[string]string{}, state: table.NewState(),
		programmed: map[string]time.Time{}, reported: map[string][]string{},
	}
	p.pending.addAll()
	return p
}

// SetNode sets what is known of the node.
func (p *Proxy) SetNode(n plan.Node) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.node != nil && reflect.DeepEqual(*p.node, n) {
		return
	}
	p.node = &n
	p.pending.addAll()
	p.queue()
}

// SetLeaving sets whether the node is about to leave.
func (p *Proxy) SetLeaving(leaving bool) { p.freshness.SetLeaving(leaving) }

// ServeHealth answers load balancers on an address until ctx ends: whether to send new connections to this node, for
// any Service and regardless of its endpoints.
func (p *Proxy) ServeHealth(ctx context.Context, address string) {
	p.freshness.Serve(ctx, p.Log, address)
}

// Run keeps the table up to date until ctx ends. The table stays: connections go on while no agent runs.
func (p *Proxy) Run(ctx context.Context) {
	synced, err := p.follow()
	if err != nil {
		p.Log.Error("Services are not carried", zap.Error(err))
		return
	}
	defer p.nodePorts.Close()
	if p.kernel.Exists() {
		p.freshness.Found(time.Now())
	}
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return
	}
	verify := time.NewTicker(verifyEvery)
	defer verify.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.wake:
		case <-verify.C:
			p.verifyTable()
			continue
		}
		if !sleep(ctx, gatherFor) {
			return
		}
		if p.Sync() != nil {
			if !sleep(ctx, retryAfter) {
				return
			}
			p.wake.Send()
		}
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// queue wakes Run to write what is pending. The caller holds mu.
func (p *Proxy) queue() {
	p.freshness.Queued(time.Now())
	p.wake.Send()
}

// verifyTable queues the whole table if another program has changed it.
func (p *Proxy) verifyTable() {
	if p.kernel.Untouched() {
		return
	}
	p.mu.Lock()
	known := p.node != nil
	p.pending.addAll()
	p.queue()
	p.mu.Unlock()
	if known {
		p.Log.Warn("the firewall table of Services is not as it was left; it is written again",
			zap.String("table", p.Table))
	}
}

// Remove deletes the table of an earlier proxy.
func Remove(table string) error { return kernel.Remove(table) }
