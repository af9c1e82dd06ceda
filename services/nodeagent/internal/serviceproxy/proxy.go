// Package serviceproxy carries the traffic of Services on one node: it keeps a firewall table of the kernel as Services
// and EndpointSlices ask for.
//
// What a Service needs is decided purely (Decide), and so is what of all Services together has changed (State). What
// changes with Services are elements of a few sets and maps, never rules: a change costs what changes, and neither a
// connection nor a change takes longer with more Services. All changes of one moment are one transaction.
package serviceproxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/tools/cache"

	"keelson.dev/kit/follow"
	"keelson.dev/services/nodeagent/internal/conntrack"
)

// Config is what a Proxy needs.
type Config struct {
	// Table is the name of the firewall table, which is this agent's alone.
	Table string
	// Services are all Services; Slices all EndpointSlices, see Index.
	Services, Slices cache.SharedIndexInformer
	// Nodes are all Nodes.
	Nodes cache.SharedIndexInformer
	// Conntrack says how the kernel follows the connections.
	Conntrack conntrack.Settings
	Log       *zap.Logger
}

const (
	// gather is how long changes are awaited that go into one transaction.
	gather = 10 * time.Millisecond
	// lookEvery is how often the proxy looks whether its table is still there.
	lookEvery = 30 * time.Second
	// retryAfter is when a transaction that failed is tried again.
	retryAfter = 2 * time.Second
)

// byService is the index of EndpointSlices by their Service.
const byService = "service"

// Indexers are what Config.Slices must have.
var Indexers = cache.Indexers{byService: func(object any) ([]string, error) {
	if s, ok := object.(*discoveryv1.EndpointSlice); ok {
		return []string{serviceOf(s)}, nil
	}
	return nil, nil
}}

func serviceOf(s *discoveryv1.EndpointSlice) string {
	return s.Namespace + "/" + s.Labels[discoveryv1.LabelServiceName]
}

// Proxy carries the Services' traffic. Make it with New.
type Proxy struct {
	Config
	kernel  *kernel
	metrics *metrics
	health  *healthServers
	track   *track
	wake    chan struct{}

	mu sync.Mutex // guards all below
	// node is nil until it is known.
	node  *Node
	peers Peers
	// api is where the API servers are, as Sync has found it.
	api   []netip.AddrPort
	dirty map[string]bool
	// owners are the Services of slices: a slice may pass from one to another.
	owners map[string]string
	// all asks for the whole table to be looked at.
	all     bool
	state   *State
	done    map[string]time.Time
	told    map[string][]string
	failure error
}

// New makes a proxy that does nothing yet.
func New(c Config) *Proxy {
	followed := &track{}
	return &Proxy{
		Config: c, kernel: newKernel(c.Table), metrics: newMetrics(), track: followed,
		health: newHealthServers(c.Log, followed),
		wake:   make(chan struct{}, 1), dirty: map[string]bool{}, owners: map[string]string{}, all: true,
		state: NewState(), done: map[string]time.Time{}, told: map[string][]string{},
	}
}

// SetNode says what is known of the node.
func (p *Proxy) SetNode(n Node) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.node != nil && reflect.DeepEqual(*p.node, n) {
		return
	}
	p.node, p.all = &n, true
	p.track.queued(time.Now())
	p.poke()
}

// Run keeps the table until ctx ends. The table stays: connections go on while no agent runs.
func (p *Proxy) Run(ctx context.Context) {
	told, err := p.follow()
	if err != nil {
		p.Log.Error("Services are not carried", zap.Error(err))
		return
	}
	defer p.health.close()
	if _, there := p.kernel.usage(); there {
		p.track.found(time.Now())
	}
	if !cache.WaitForCacheSync(ctx.Done(), told...) {
		return
	}
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.wake:
		case <-look.C:
			p.look()
			continue
		}
		if !sleep(ctx, gather) {
			return
		}
		if p.Sync() != nil {
			if !sleep(ctx, retryAfter) {
				return
			}
			p.poke()
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

func (p *Proxy) poke() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// look asks for the whole table if somebody else has changed it.
func (p *Proxy) look() {
	if p.kernel.stands() {
		return
	}
	p.mu.Lock()
	known := p.node != nil
	p.all = true
	p.track.queued(time.Now())
	p.mu.Unlock()
	if known {
		p.Log.Warn("the firewall table of Services is not as it was left; it is written again",
			zap.String("table", p.Table))
		p.poke()
	}
}

// follow returns what tells whether everything that there was has been taken in.
func (p *Proxy) follow() ([]cache.InformerSynced, error) {
	service := func(s *corev1.Service) { p.mark(s.Namespace + "/" + s.Name) }
	services, err := p.Services.AddEventHandler(follow.Handler(service, service))
	if err != nil {
		return nil, fmt.Errorf("following Services: %w", err)
	}
	nodes, err := p.Nodes.AddEventHandler(follow.Handler(
		func(n *corev1.Node) { p.setPeer(n, true) }, func(n *corev1.Node) { p.setPeer(n, false) }))
	if err != nil {
		return nil, fmt.Errorf("following Nodes: %w", err)
	}
	endpoints, err := p.Slices.AddEventHandler(follow.Handler(
		func(s *discoveryv1.EndpointSlice) { p.own(s, true) }, func(s *discoveryv1.EndpointSlice) { p.own(s, false) }))
	if err != nil {
		return nil, fmt.Errorf("following EndpointSlices: %w", err)
	}
	return []cache.InformerSynced{services.HasSynced, nodes.HasSynced, endpoints.HasSynced}, nil
}

// setPeer takes in a Node. Where something of it is new, the Services that may have named its addresses are looked at.
func (p *Proxy) setPeer(n *corev1.Node, there bool) {
	p.mu.Lock()
	news := true
	if there {
		news = p.peers.Set(n)
	} else {
		p.peers.Remove(n)
	}
	whole := p.all
	p.mu.Unlock()
	if !news || whole {
		return
	}
	p.markNamed()
}

// markNamed has the Services looked at that may have named others' addresses.
func (p *Proxy) markNamed() {
	var names []string
	for _, object := range p.Services.GetStore().List() {
		if s, ok := object.(*corev1.Service); ok && reachesBeyond(s) {
			names = append(names, s.Namespace+"/"+s.Name)
		}
	}
	if len(names) > 0 {
		p.mark(names...)
	}
}

func (p *Proxy) mark(names ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range names {
		p.dirty[name] = true
	}
	p.track.queued(time.Now())
	p.poke()
}

func (p *Proxy) own(s *discoveryv1.EndpointSlice, there bool) {
	key, name := s.Namespace+"/"+s.Name, serviceOf(s)
	p.mu.Lock()
	before := p.owners[key]
	if there {
		p.owners[key] = name
	} else {
		delete(p.owners, key)
	}
	p.mu.Unlock()
	if before != "" && before != name {
		p.mark(before)
	}
	p.mark(name)
	if name == apiService || before == apiService {
		p.markNamed()
	}
}

// Sync makes the kernel's table right.
func (p *Proxy) Sync() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.node == nil || !p.all && len(p.dirty) == 0 {
		return nil
	}
	begun := time.Now()
	names, whole := slices.Sorted(maps.Keys(p.dirty)), p.all
	if whole {
		names = p.names()
		if err := Prepare(*p.node); err != nil {
			p.Log.Warn("Services: the kernel does not lead all packets on", zap.Error(err))
		}
	}
	p.api = apiTargets(p.slicesOf(apiService))
	flows, udp := Flows{}, Flows{}
	for _, name := range names {
		maps.Copy(flows, p.replace(name, udp))
	}
	count, err := p.write(whole)
	p.metrics.observe(begun, whole, count, err)
	if p.failure = err; err != nil {
		p.all = true
		p.Log.Error("Services: the kernel's table could not be written; trying again", zap.Error(err))
		return err
	}
	if whole {
		flows = udp
		if err := p.Conntrack.Apply(); err != nil { // the rules have the kernel follow connections
			p.Log.Warn("Services: connections are followed as the kernel does by itself", zap.Error(err))
		}
	}
	p.all, p.dirty = false, map[string]bool{}
	p.track.written(time.Now())
	for _, name := range names {
		p.settle(name)
	}
	p.metrics.services.Set(float64(p.state.Len()))
	if len(flows) > 0 {
		if _, err := flows.forget(); err != nil {
			p.Log.Warn("Services: some UDP flows lead to endpoints that are gone", zap.Error(err))
		}
	}
	return nil
}

// names are all Services that there are or that the table has, in the order in which they claim addresses.
func (p *Proxy) names() []string {
	all := map[string]time.Time{}
	for name := range p.state.services {
		all[name] = time.Time{}
	}
	for _, object := range p.Services.GetStore().List() {
		if s, ok := object.(*corev1.Service); ok {
			all[s.Namespace+"/"+s.Name] = s.CreationTimestamp.Time
		}
	}
	return slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		return cmp.Or(all[a].Compare(all[b]), cmp.Compare(a, b))
	})
}

// replace decides on a Service anew and returns which UDP flows to it may go on, if others may not; udp gets all.
func (p *Proxy) replace(name string, udp Flows) Flows {
	var plan Plan
	var created time.Time
	object, found, _ := p.Services.GetStore().GetByKey(name) // a store in memory does not fail
	if service, ok := object.(*corev1.Service); found && ok {
		created = service.CreationTimestamp.Time
		plan = Decide(Input{Service: service, Slices: p.slicesOf(name), Node: *p.node, Peers: &p.peers, API: p.api})
	}
	old, _ := p.state.Plan(name)
	problems := append(slices.Clone(plan.Problems), p.state.Replace(name, created, plan)...)
	for _, problem := range problems {
		if !slices.Contains(p.told[name], problem) {
			p.Log.Warn("Service " + name + ": " + problem)
		}
	}
	if p.told[name] = problems; len(problems) == 0 {
		delete(p.told, name)
	}
	for i := range plan.Ports {
		if port := &plan.Ports[i]; port.Protocol == corev1.ProtocolUDP {
			for _, f := range port.Frontends {
				udp[f.Key] = port.endpoints(f.Key)
			}
		}
	}
	return stale(old, plan)
}

func (p *Proxy) slicesOf(name string) []*discoveryv1.EndpointSlice {
	objects, _ := p.Slices.GetIndexer().ByIndex(byService, name) // fails only without the index
	out := make([]*discoveryv1.EndpointSlice, 0, len(objects))
	for _, object := range objects {
		if s, ok := object.(*discoveryv1.EndpointSlice); ok {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b *discoveryv1.EndpointSlice) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// write returns how many elements were changed.
func (p *Proxy) write(whole bool) (int, error) {
	if whole {
		elements, picks, lengths := p.state.All()
		return p.kernel.takeOver(wanted{elements, picks, lengths, *p.node})
	}
	c := p.state.Changes()
	count := len(c.Gone) + len(c.New)
	if count == 0 && !c.LengthsChanged {
		return 0, nil
	}
	return count, p.kernel.apply(c, *p.node)
}

// settle notes that a Service is as it should be.
func (p *Proxy) settle(name string) {
	plan, there := p.state.Plan(name)
	p.health.set(name, plan.Health, p.node.Addresses)
	if there {
		p.done[name] = time.Now()
	} else {
		delete(p.done, name)
	}
}

// Remove takes away the table of a proxy that carried Services before.
func Remove(table string) error {
	k := newKernel(table)
	return errors.Join(k.remove(), k.meanwhile().remove())
}
