package serviceproxy

import (
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/nodeagent/internal/serviceproxy/kernel"
	"keelson.dev/services/nodeagent/internal/serviceproxy/plan"
	"keelson.dev/services/nodeagent/internal/serviceproxy/table"
)

// work is what one Sync has decided and the kernel has to do.
type work struct {
	batch
	begun time.Time
	node  plan.Node
	// ruleset is the content of a whole table; changes are for a batch that is not whole.
	ruleset table.Ruleset
	changes table.Changes
	// flows are the UDP flows that may go on, for destinations where others may not.
	flows        plan.Flows
	healthChecks map[string]*plan.HealthCheck
	// problems are new problems, to be logged.
	problems []string
}

// Sync brings the kernel's table up to date. Only one goroutine at a time may call it.
func (p *Proxy) Sync() error {
	w, ok := p.decide()
	if !ok {
		return nil
	}
	for _, problem := range w.problems {
		p.Log.Warn(problem)
	}
	if err := p.write(w); err != nil {
		p.fail(err)
		p.Log.Error("Services: the kernel's table could not be written; trying again", zap.Error(err))
		return err
	}
	for _, name := range w.services {
		p.nodePorts.Set(name, w.healthChecks[name], w.node.Addresses)
	}
	if len(w.flows) > 0 {
		if err := kernel.ForgetFlows(w.flows); err != nil {
			p.Log.Warn("Services: some UDP flows lead to endpoints that are gone", zap.Error(err))
		}
	}
	p.commit(w)
	return nil
}

// decide returns the work for what is pending; false if nothing is.
func (p *Proxy) decide() (work, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.node == nil || p.pending.empty() {
		return work{}, false
	}
	w := work{batch: p.pending.take(), begun: time.Now(), node: *p.node, flows: plan.Flows{},
		healthChecks: map[string]*plan.HealthCheck{}}
	if w.whole {
		w.services = p.names()
	}
	p.apiServers = plan.APIServers(p.slicesOf(plan.APIServerService))
	for _, name := range w.services {
		p.replan(name, &w)
	}
	if w.whole {
		w.ruleset = p.state.Ruleset(w.node)
	} else {
		w.changes = p.state.Changes()
	}
	return w, true
}

// replan decides on a Service again.
func (p *Proxy) replan(name string, w *work) {
	var next plan.Plan
	var created time.Time
	object, found, _ := p.Services.GetStore().GetByKey(name) // a store in memory does not fail
	if service, ok := object.(*corev1.Service); found && ok {
		created = service.CreationTimestamp.Time
		next = plan.Decide(plan.Input{Service: service, Slices: p.slicesOf(name), Node: w.node, Peers: &p.peers,
			APIServers: p.apiServers})
	}
	old, _ := p.state.Plan(name)
	problems := append(slices.Clone(next.Problems), p.state.Replace(name, created, next)...)
	for _, problem := range problems {
		if !slices.Contains(p.reported[name], problem) {
			w.problems = append(w.problems, "Service "+name+": "+problem)
		}
	}
	if p.reported[name] = problems; len(problems) == 0 {
		delete(p.reported, name)
	}
	if kept, _ := p.state.Plan(name); kept.HealthCheck != nil {
		w.healthChecks[name] = kept.HealthCheck
	}
	if w.whole {
		maps.Copy(w.flows, next.UDPFlows())
	} else {
		maps.Copy(w.flows, plan.StaleFlows(old, next))
	}
}

// write has the kernel do the work.
func (p *Proxy) write(w work) error {
	if !w.whole {
		count, err := p.kernel.Apply(w.changes, w.node)
		p.metrics.observe(w, count, err)
		return err
	}
	if err := kernel.EnableForwarding(w.node); err != nil {
		p.Log.Warn("Services: the kernel does not lead all packets on", zap.Error(err))
	}
	count, err := p.kernel.Program(w.ruleset)
	p.metrics.observe(w, count, err)
	if err != nil {
		return err
	}
	if err := p.Conntrack.Apply(); err != nil { // the rules make the kernel track connections
		p.Log.Warn("Services: connections are followed as the kernel does by itself", zap.Error(err))
	}
	return nil
}

// fail queues the whole table, since what the kernel has of it is unknown.
func (p *Proxy) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failure = err
	p.pending.addAll()
}

// commit notes that the work is done.
func (p *Proxy) commit(w work) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failure = nil
	p.state.Commit()
	p.pending.commit(w.batch)
	now, pendingSince := time.Now(), time.Time{}
	if !p.pending.empty() {
		pendingSince = w.begun // or later: the change came while the kernel worked
	}
	p.freshness.Written(now, pendingSince)
	for _, name := range w.services {
		if _, exists := p.state.Plan(name); exists {
			p.programmed[name] = now
		} else {
			delete(p.programmed, name)
		}
	}
	p.metrics.services.Set(float64(p.state.Len()))
}
