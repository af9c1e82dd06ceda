package serviceproxy

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func chance(r *rand.Rand, of int) bool { return r.IntN(of) == 0 }

// random makes the objects of one of a few Services, which want each other's addresses.
func random(r *rand.Rand, name string, number int) (*corev1.Service, []*discoveryv1.EndpointSlice) {
	s := one(func(s *corev1.Service) {
		s.Name = name
		s.CreationTimestamp = metav1.NewTime(time.Unix(int64(r.IntN(3)), 0))
		s.Spec.ClusterIP = fmt.Sprintf("10.96.0.%d", number+1)
		s.Spec.ClusterIPs = []string{s.Spec.ClusterIP}
		if chance(r, 2) {
			s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: "dns", Protocol: "UDP", Port: 53})
		}
		for i := range s.Spec.Ports {
			s.Spec.Ports[i].NodePort = int32(30000 + r.IntN(3))
		}
		s.Spec.Type = []corev1.ServiceType{"ClusterIP", "NodePort", "LoadBalancer", "ExternalName"}[r.IntN(4)]
		if chance(r, 2) {
			s.Spec.ExternalIPs = []string{fmt.Sprintf("10.96.0.%d", r.IntN(6)), "198.51.100.1"}
		}
		if chance(r, 2) {
			balancedIP := fmt.Sprintf("203.0.113.%d", r.IntN(2))
			s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: balancedIP}}
		}
		if chance(r, 3) {
			s.Spec.LoadBalancerSourceRanges = []string{fmt.Sprintf("10.0.0.0/%d", 8+r.IntN(3)), "192.0.2.0/24"}
		}
		if chance(r, 3) {
			s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
		}
		if chance(r, 3) {
			localTraffic(s)
		}
		if chance(r, 3) {
			s.Spec.InternalTrafficPolicy = new(corev1.ServiceInternalTrafficPolicyLocal)
		}
	})
	var all []*discoveryv1.EndpointSlice
	hinted := chance(r, 2)
	for range r.IntN(3) {
		slice := slice(discoveryv1.AddressTypeIPv4, int32(8080+r.IntN(2)))
		slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{Name: new("dns"), Protocol: new(corev1.ProtocolUDP),
			Port: new(int32(5353))})
		for range r.IntN(5) {
			words := fmt.Sprintf("10.244.1.%d ", 1+r.IntN(4)) +
				[]string{"", "ready", "unready", "draining", "ended"}[r.IntN(5)] + [...]string{" here", " there",
				""}[r.IntN(3)]
			if hinted && !chance(r, 6) {
				words += fmt.Sprintf(" zone:z%d node:%s", r.IntN(3), []string{"here", "there"}[r.IntN(2)])
			}
			slice.Endpoints = append(slice.Endpoints, endpoint(words))
		}
		all = append(all, slice)
	}
	return s, all
}

// eligible is, in the API's own words and slowly, whether a port's connections may go to an endpoint.
func eligible(s *corev1.Service, all []*discoveryv1.EndpointSlice, p Port, target netip.AddrPort, local bool) bool {
	type view struct{ ready, draining, here, zone, node, hasZone, hasNode bool }
	var views []view
	var of []netip.AddrPort
	for _, slice := range all {
		for _, port := range slice.Ports {
			protocol := corev1.ProtocolTCP
			if port.Protocol != nil {
				protocol = *port.Protocol
			}
			if *port.Name != p.Name || protocol != p.Protocol {
				continue
			}
			for _, e := range slice.Endpoints {
				c := e.Conditions
				serving := c.Serving == nil || *c.Serving
				v := view{ready: c.Ready == nil || *c.Ready, draining: serving && c.Terminating != nil &&
					*c.Terminating,
					here: e.NodeName != nil && *e.NodeName == testNode.Name}
				if e.Hints != nil {
					v.hasZone, v.hasNode = len(e.Hints.ForZones) > 0, len(e.Hints.ForNodes) > 0
					for _, h := range e.Hints.ForZones {
						v.zone = v.zone || h.Name == testNode.Zone
					}
					for _, h := range e.Hints.ForNodes {
						v.node = v.node || h.Name == testNode.Name
					}
				}
				views = append(views, v)
				of = append(of, netip.AddrPortFrom(netip.MustParseAddr(e.Addresses[0]), uint16(*port.Port)))
			}
		}
	}
	any := func(want func(view) bool) bool { return slices.ContainsFunc(views, want) }
	is := func(want func(view) bool) bool {
		for i, v := range views {
			if of[i] == target && want(v) {
				return true
			}
		}
		return false
	}
	if local {
		// An address may be named twice; it is on this node if one of its names says so.
		here := func(i int) bool {
			for k, o := range views {
				if of[k] == of[i] && o.here && (o.ready || o.draining) {
					return true
				}
			}
			return false
		}
		readyHere := false
		for i, v := range views {
			readyHere = readyHere || v.ready && here(i)
		}
		at := slices.Index(of, target)
		return at >= 0 && here(at) && is(func(v view) bool { return v.ready || !readyHere && v.draining })
	}
	if !any(func(v view) bool { return v.ready }) {
		return is(func(v view) bool { return v.draining })
	}
	unhinted := func(has func(view) bool) bool { return any(func(v view) bool { return v.ready && !has(v) }) }
	switch {
	case !unhinted(func(v view) bool { return v.hasNode }) && any(func(v view) bool { return v.ready && v.node }):
		return is(func(v view) bool { return v.ready && v.node })
	case !unhinted(func(v view) bool { return v.hasZone }) && any(func(v view) bool { return v.ready && v.zone }):
		return is(func(v view) bool { return v.ready && v.zone })
	}
	return is(func(v view) bool { return v.ready })
}

// Every endpoint that is programmed is eligible, and every eligible one is programmed.
func TestEndpointsAreEligible(t *testing.T) {
	for seed := range uint64(20000) {
		r := rand.New(rand.NewPCG(seed, 1))
		s, all := random(r, "web", 1)
		for _, p := range decide(s, all...).Ports {
			for local, pool := range map[bool][]netip.AddrPort{false: p.Cluster, true: p.Local} {
				for host := range 5 {
					for _, port := range []uint16{8080, 8081, 5353} {
						target := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 244, 1, byte(host)}), port)
						want := eligible(s, all, p, target, local)
						if got := slices.Contains(pool, target); got != want {
							t.Fatalf("seed %d, port %s, local %v: %s is programmed: %v, want %v", seed, p.Name, local,
								target, got, want)
						}
					}
				}
			}
		}
	}
}

// tables apply changes as the kernel does: nothing may go that is not there, nothing come that is.
type tables struct {
	elements map[string]map[string]string
	picks    map[Pick]bool
}

func (k *tables) apply(c Changes) error {
	for _, e := range c.Gone {
		if value, there := k.elements[e.Set][e.Key]; !there || value != e.Value {
			return fmt.Errorf("%s: %x goes and is not there", e.Set, e.Key)
		}
		delete(k.elements[e.Set], e.Key)
	}
	for _, e := range c.New {
		if k.elements[e.Set] == nil {
			k.elements[e.Set] = map[string]string{}
		}
		if _, there := k.elements[e.Set][e.Key]; there {
			return fmt.Errorf("%s: %x comes and is there", e.Set, e.Key)
		}
		k.elements[e.Set][e.Key] = e.Value
	}
	for _, p := range c.NewPicks {
		if k.picks[p] {
			return fmt.Errorf("pick %v comes and is there", p)
		}
		k.picks[p] = true
	}
	for _, p := range c.GonePicks {
		if !k.picks[p] {
			return fmt.Errorf("pick %v goes and is not there", p)
		}
		delete(k.picks, p)
	}
	return nil
}

// However Services change, and however many changes go together, the changes lead to the same tables as one look at all
// Services, up to places in pools; no key has two Services, the oldest claim of the strongest rank wins, and nothing is
// left when all have gone.
func TestChangesLeadToTheWhole(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 2))
		state := NewState()
		kernel := &tables{elements: map[string]map[string]string{}, picks: map[Pick]bool{}}
		state.All()
		plans, created := map[string]Plan{}, map[string]time.Time{}
		for range 30 {
			for range 1 + r.IntN(3) {
				number := r.IntN(4)
				name := fmt.Sprint("s", number)
				s, all := random(r, name, number)
				plan := decide(s, all...)
				if chance(r, 4) {
					plan = Plan{}
				}
				state.Replace(name, s.CreationTimestamp.Time, plan)
				plans[name], created[name] = plan, s.CreationTimestamp.Time
			}
			if err := kernel.apply(state.Changes()); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			fresh := NewState()
			for _, name := range slices.Sorted(maps.Keys(plans)) {
				plan := plans[name]
				if now, ok := state.Plan(name); ok {
					plan = now // with its places
				}
				fresh.Replace(name, created[name], plan)
			}
			want, picks, _ := fresh.All()
			for _, set := range slices.Concat(slices.Collect(maps.Keys(want)),
				slices.Collect(maps.Keys(kernel.elements))) {
				if !maps.Equal(want[set], kernel.elements[set]) {
					t.Fatalf("seed %d: set %s has %x, want %x", seed, set, kernel.elements[set], want[set])
				}
			}
			if len(picks) != len(kernel.picks) {
				t.Fatalf("seed %d: picks %v, want %v", seed, kernel.picks, picks)
			}
			holders(t, seed, state, plans, created, kernel)
		}
		for name := range plans {
			state.Replace(name, time.Time{}, Plan{})
		}
		if err := kernel.apply(state.Changes()); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for set, left := range kernel.elements {
			if len(left) > 0 || len(kernel.picks) > 0 || len(state.claims) > 0 || len(state.lengths) > 0 {
				t.Fatalf("seed %d: left in %s: %x", seed, set, left)
			}
		}
	}
}

// holders looks for each key who should have it, and whether its connections go there.
func holders(t *testing.T, seed uint64, state *State, plans map[string]Plan, created map[string]time.Time,
	kernel *tables) {
	best := map[Key]claim{}
	ids := map[string]map[Key]ID{}
	for name := range plans {
		plan, _ := state.Plan(name)
		ids[name] = map[Key]ID{}
		for _, p := range plan.Ports {
			for _, f := range p.Frontends {
				c := claim{name, created[name], f.Rank}
				if old, there := best[f.Key]; !there || stronger(c, old) < 0 {
					best[f.Key] = c
				}
				if ids[name][f.Key] = p.ID; len(p.Cluster) == 0 {
					ids[name][f.Key] = ID{}
				}
			}
		}
	}
	for key, c := range best {
		value := kernel.elements["ports4"][key.encode()]
		if want := ids[c.name][key]; want != (ID{}) && (len(value) < 16 || ID([]byte(value[:16])) != want) {
			t.Fatalf("seed %d: %v is not %s's", seed, key, c.name)
		} else if want == (ID{}) && value != "" {
			t.Fatalf("seed %d: %v of %s has no endpoint and leads somewhere", seed, key, c.name)
		}
	}
}
