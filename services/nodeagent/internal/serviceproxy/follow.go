package serviceproxy

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/tools/cache"

	"keelson.dev/kit/follow"
	"keelson.dev/services/nodeagent/internal/serviceproxy/plan"
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

// follow registers the event handlers and returns functions that report whether the initial objects were handled.
func (p *Proxy) follow() ([]cache.InformerSynced, error) {
	service := func(s *corev1.Service) { p.changed(s.Namespace + "/" + s.Name) }
	services, err := p.Services.AddEventHandler(follow.Handler(service, service))
	if err != nil {
		return nil, fmt.Errorf("following Services: %w", err)
	}
	nodes, err := p.Nodes.AddEventHandler(follow.Handler(p.setPeer, p.removePeer))
	if err != nil {
		return nil, fmt.Errorf("following Nodes: %w", err)
	}
	endpoints, err := p.Slices.AddEventHandler(follow.Handler(p.setSlice, p.removeSlice))
	if err != nil {
		return nil, fmt.Errorf("following EndpointSlices: %w", err)
	}
	return []cache.InformerSynced{services.HasSynced, nodes.HasSynced, endpoints.HasSynced}, nil
}

// changed queues Services for a new decision.
func (p *Proxy) changed(names ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range names {
		p.pending.add(name)
	}
	p.queue()
}

// setPeer takes in a Node.
func (p *Proxy) setPeer(n *corev1.Node) {
	p.mu.Lock()
	news, all := p.peers.Set(n), p.pending.allAhead()
	p.mu.Unlock()
	if news && !all {
		p.namingChanged()
	}
}

func (p *Proxy) removePeer(n *corev1.Node) {
	p.mu.Lock()
	p.peers.Remove(n)
	all := p.pending.allAhead()
	p.mu.Unlock()
	if !all {
		p.namingChanged()
	}
}

// namingChanged queues the Services that may name addresses of nodes or API servers.
func (p *Proxy) namingChanged() {
	var names []string
	for _, object := range p.Services.GetStore().List() {
		if s, ok := object.(*corev1.Service); ok && plan.NamesAddresses(s) {
			names = append(names, s.Namespace+"/"+s.Name)
		}
	}
	if len(names) > 0 {
		p.changed(names...)
	}
}

func (p *Proxy) setSlice(s *discoveryv1.EndpointSlice) {
	p.mu.Lock()
	key, owner := s.Namespace+"/"+s.Name, serviceOf(s)
	before := p.owners[key]
	p.owners[key] = owner
	p.mu.Unlock()
	p.endpointsChanged(owner, before)
}

func (p *Proxy) removeSlice(s *discoveryv1.EndpointSlice) {
	p.mu.Lock()
	key, owner := s.Namespace+"/"+s.Name, serviceOf(s)
	before := p.owners[key]
	delete(p.owners, key)
	p.mu.Unlock()
	p.endpointsChanged(owner, before)
}

// endpointsChanged queues the Service that owns a slice, and the one that owned it before; empty for none.
func (p *Proxy) endpointsChanged(owner, before string) {
	if before != "" && before != owner {
		p.changed(before)
	}
	p.changed(owner)
	if owner == plan.APIServerService || before == plan.APIServerService {
		p.namingChanged()
	}
}

// names returns the Services that exist or that the table has, in the order in which they claim destinations.
func (p *Proxy) names() []string {
	all := map[string]time.Time{}
	for name := range p.state.Names() {
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
