package nodehealth

import (
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/conditions"
)

// fleet is what the collector knows of all nodes together: when each was last heard of, how the zones stand, and
// whose turn it is. It knows no clock of its own and is safe for concurrent use. Losing it gives every node a whole
// grace period anew.
type fleet struct {
	settings Settings

	mu    sync.Mutex // guards what follows
	nodes map[string]*member
	zones map[string]*zone
	// watched is for how long the nodes have been looked at. Silence is measured in it: while the collector does not
	// look, because the apiserver is away or this process was stopped, nodes cannot be heard.
	watched  time.Duration
	lookedAt time.Time
	halted   bool
	// wake are nodes to look at again.
	wake []string
}

// member is what is kept of a node.
type member struct {
	zone string
	// heard is when the node last gave a sign of life, in watched time.
	heard time.Duration
	// renewed is the time in its Lease, 0 as long as it has none; said is what it last reported.
	renewed int64
	said    report
	// exempt nodes say nothing about their zone; notReady ones are marked so, by themselves or by a collector.
	exempt, started, notReady bool
	// silent is what the last look said.
	silent bool
	// down and suspect are how the zone counts it.
	counted, down, suspect bool
	// waits says that it waits in its zone's line, evict that it has had its turn.
	waits, evict bool
}

// report identifies what a node said of its readiness.
type report struct {
	status                corev1.ConditionStatus
	heartbeat, transition int64
}

// zone is a failure domain.
type zone struct {
	members int
	// nodes are those that say something about the zone, and the others are parts of them.
	nodes, down, suspect int
	// line are the nodes that wait to be given up, the first one first. gaveUp is when that was done last.
	line   []string
	gaveUp time.Time
}

func newFleet(settings Settings) *fleet {
	return &fleet{settings: settings, nodes: map[string]*member{}, zones: map[string]*zone{}}
}

// clock is the watched time at a moment since the last look.
func (f *fleet) clock(now time.Time) time.Duration {
	if f.lookedAt.IsZero() {
		return 0
	}
	return f.watched + min(max(now.Sub(f.lookedAt), 0), 2*f.settings.period())
}

// take takes in a Node as it is now.
func (f *fleet) take(node *corev1.Node, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.nodes[node.Name]
	if in := zoneOf(node); m == nil {
		m = &member{zone: in, heard: f.clock(now)}
		f.nodes[node.Name] = m
		f.join(m)
	} else if m.zone != in {
		f.leave(node.Name, m)
		m.zone = in
		f.join(m)
	}
	f.read(node, m, now)
	f.judge(m)
}

// read takes over what the Node says.
func (f *fleet) read(node *corev1.Node, m *member, now time.Time) {
	ready := conditions.Node.Find(node.Status.Conditions, corev1.NodeReady)
	_, m.exempt = node.Labels[noDisruptionCheck]
	m.started = ready != nil
	m.notReady = ready != nil && ready.Status != corev1.ConditionTrue
	if ready != nil && ready.Reason != reasonSilent && ready.Reason != reasonNever {
		said := report{ready.Status, ready.LastHeartbeatTime.Unix(), ready.LastTransitionTime.Unix()}
		if said != m.said {
			m.said, m.heard = said, f.clock(now)
		}
	}
	for i := range node.Spec.Taints {
		if t := &node.Spec.Taints[i]; isEviction(*t) {
			m.evict = false
			if z := f.zones[m.zone]; t.TimeAdded != nil && t.TimeAdded.After(z.gaveUp) && !t.TimeAdded.After(now) {
				z.gaveUp = t.TimeAdded.Time // A new leader goes on at the pace of the last one.
			}
		}
	}
}

// join takes a node into its zone.
func (f *fleet) join(m *member) {
	if f.zones[m.zone] == nil {
		f.zones[m.zone] = &zone{}
	}
	f.zones[m.zone].members++
}

// forget drops a node that is gone.
func (f *fleet) forget(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.drop(name)
}

func (f *fleet) drop(name string) {
	if m := f.nodes[name]; m != nil {
		f.leave(name, m)
		delete(f.nodes, name)
	}
}

// leave takes a node out of its zone.
func (f *fleet) leave(name string, m *member) {
	z := f.zones[m.zone]
	f.quit(name, m)
	m.evict = false
	f.count(z, m, -1)
	m.counted, m.down, m.suspect = false, false, false
	if z.members--; z.members == 0 {
		delete(f.zones, m.zone)
	}
}

// look takes in the times of all Leases, which were read at now, and drops nodes that are gone: a pass that began
// before a deletion may have brought one back.
func (f *fleet) look(nodes map[string]bool, renewed map[string]int64, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.watched, f.lookedAt = f.clock(now), now
	for name, m := range f.nodes {
		if !nodes[name] {
			f.drop(name)
			continue
		}
		if at := renewed[name]; at != 0 && at != m.renewed {
			m.renewed, m.heard = at, f.watched
		}
		f.judge(m)
	}
	f.settle(now)
	for name, m := range f.nodes {
		if silent := f.isSilent(m); silent != m.silent {
			m.silent = silent
			f.wake = append(f.wake, name)
		}
	}
	for _, z := range f.zones {
		if len(z.line) > 0 {
			f.wake = append(f.wake, z.line[0])
		}
	}
}

// stand returns the standing of a node; it joins the line, keeps its place or leaves it.
func (f *fleet) stand(node *corev1.Node, now time.Time) Standing {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.settle(now)
	m := f.nodes[node.Name]
	if m == nil {
		return Standing{}
	}
	s := Standing{Silent: f.isSilent(m), Halted: f.halted}
	if f.halted || !wantsTurn(node, s.Silent) {
		f.quit(node.Name, m)
		m.evict = false
		return s
	}
	s.Evict, s.Wait = f.turn(node.Name, m, now)
	return s
}

// turn reports whether it is the node's turn to be given up.
func (f *fleet) turn(name string, m *member, now time.Time) (evict bool, wait time.Duration) {
	if m.evict {
		return true, 0
	}
	z := f.zones[m.zone]
	if !m.waits {
		m.waits, z.line = true, append(z.line, name)
	}
	pause, moves := f.settings.pause(census{z.nodes - z.suspect, z.suspect})
	if z.line[0] != name || !moves || f.all(func(z *zone) int { return z.suspect }) {
		return false, 0 // The next look wakes the first of the line.
	}
	if left := z.gaveUp.Add(pause).Sub(now); left > 0 {
		return false, left
	}
	z.gaveUp, m.evict = now, true
	f.quit(name, m)
	return true, 0
}

// quit takes a node out of its zone's line.
func (f *fleet) quit(name string, m *member) {
	if !m.waits {
		return
	}
	z := f.zones[m.zone]
	m.waits, z.line = false, slices.DeleteFunc(z.line, func(n string) bool { return n == name })
	if len(z.line) > 0 {
		f.wake = append(f.wake, z.line[0])
	}
}

// due returns the nodes to look at again, once.
func (f *fleet) due() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	names := f.wake
	f.wake = nil
	return names
}

// isSilent reports whether the node's grace period is over.
func (f *fleet) isSilent(m *member) bool { return f.watched-m.heard >= f.grace(m) }

func (f *fleet) grace(m *member) time.Duration {
	if !m.started || m.renewed == 0 {
		return f.settings.StartupGrace
	}
	return f.settings.MonitorGrace
}

// judge recounts a node. One is suspect from half of its grace period on: nodes that fall silent together are not
// noticed in one look, and the first of them must not be taken for the only one.
func (f *fleet) judge(m *member) {
	z := f.zones[m.zone]
	f.count(z, m, -1)
	m.counted = m.started && !m.exempt
	m.down = m.notReady || f.isSilent(m)
	m.suspect = m.down || f.watched-m.heard >= f.grace(m)/2
	f.count(z, m, 1)
}

func (f *fleet) count(z *zone, m *member, by int) {
	if !m.counted {
		return
	}
	z.nodes += by
	if m.down {
		z.down += by
	}
	if m.suspect {
		z.suspect += by
	}
}

// settle notices that no node is in order any more, or that some are again: then every node is looked at, and those
// that were not heard of meanwhile have their whole grace period.
func (f *fleet) settle(now time.Time) {
	halted := f.all(func(z *zone) int { return z.down })
	if halted == f.halted {
		return
	}
	f.halted = halted
	for name, m := range f.nodes {
		if !halted {
			m.heard = f.clock(now)
		}
		f.wake = append(f.wake, name)
	}
	for _, m := range f.nodes {
		f.judge(m)
	}
}

// all reports whether every zone is fully disrupted, by the number of nodes that count as not ready.
func (f *fleet) all(notReady func(*zone) int) bool {
	some := false
	for _, z := range f.zones {
		if z.nodes == 0 {
			continue
		}
		n := notReady(z)
		if (census{z.nodes - n, n}).state(f.settings.UnhealthyZone) != fullDisruption {
			return false
		}
		some = true
	}
	return some
}
