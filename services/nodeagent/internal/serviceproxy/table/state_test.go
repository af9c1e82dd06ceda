package table

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

	"keelson.dev/services/nodeagent/internal/serviceproxy/plan"
	"keelson.dev/services/nodeagent/internal/serviceproxy/servicetest"
)

func decide(s *corev1.Service, all ...*discoveryv1.EndpointSlice) plan.Plan {
	return plan.Decide(plan.Input{Service: s, Slices: all, Node: plan.Node{Name: "here", Zone: "z1",
		Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8:1::1")}}})
}

// tables apply changes as the kernel does: only existing elements may be removed, and only missing ones added.
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

// However Services change, and however many changes are combined, the changes lead to the same tables as one
// computation for all Services, except for places in pools; no destination has two Services, the oldest claim of
// the strongest rank wins, and nothing is left when all Services are gone.
func TestChangesLeadToTheWhole(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 2))
		state := NewState()
		kernel := &tables{elements: map[string]map[string]string{}, picks: map[Pick]bool{}}
		state.Commit()
		plans, created := map[string]plan.Plan{}, map[string]time.Time{}
		for range 30 {
			for range 1 + r.IntN(3) {
				number := r.IntN(4)
				name := fmt.Sprint("s", number)
				s, all := servicetest.Random(r, name, number)
				next := decide(s, all...)
				if r.IntN(4) == 0 {
					next = plan.Plan{}
				}
				state.Replace(name, s.CreationTimestamp.Time, next)
				plans[name], created[name] = next, s.CreationTimestamp.Time
			}
			changes := state.Changes()
			if r.IntN(4) == 0 { // the kernel refuses: the same is to be read again
				continue
			}
			if err := kernel.apply(changes); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			state.Commit()
			fresh := NewState()
			for _, name := range slices.Sorted(maps.Keys(plans)) {
				had := plans[name]
				if now, ok := state.Plan(name); ok {
					had = now // with its places
				}
				fresh.Replace(name, created[name], had)
			}
			whole := fresh.Ruleset(plan.Node{})
			want, picks := whole.Elements, whole.Picks
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
			state.Replace(name, time.Time{}, plan.Plan{})
		}
		if err := kernel.apply(state.Changes()); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for set, left := range kernel.elements {
			if len(left) > 0 || len(kernel.picks) > 0 || len(state.claims) > 0 || len(state.prefixLengths) > 0 {
				t.Fatalf("seed %d: left in %s: %x", seed, set, left)
			}
		}
	}
}

// holders checks for each destination which Service should hold it, and whether its connections go there.
func holders(t *testing.T, seed uint64, state *State, plans map[string]plan.Plan, created map[string]time.Time,
	kernel *tables) {
	best := map[plan.Destination]claim{}
	ids := map[string]map[plan.Destination]plan.ID{}
	for name := range plans {
		now, _ := state.Plan(name)
		ids[name] = map[plan.Destination]plan.ID{}
		for _, p := range now.Ports {
			for _, f := range p.Frontends {
				c := claim{name, created[name], f.Rank}
				if old, there := best[f.Destination]; !there || stronger(c, old) < 0 {
					best[f.Destination] = c
				}
				if ids[name][f.Destination] = p.ID; len(p.ClusterEndpoints) == 0 {
					ids[name][f.Destination] = plan.ID{}
				}
			}
		}
	}
	for key, c := range best {
		value := kernel.elements["ports4"][encodeDestination(key)]
		if want := ids[c.name][key]; want != (plan.ID{}) && (len(value) < 16 || plan.ID([]byte(value[:16])) != want) {
			t.Fatalf("seed %d: %v is not %s's", seed, key, c.name)
		} else if want == (plan.ID{}) && value != "" {
			t.Fatalf("seed %d: %v of %s has no endpoint and leads somewhere", seed, key, c.name)
		}
	}
}

// Of many destinations that another Service holds, 20 are named.
func TestTakenIsBounded(t *testing.T) {
	for _, r := range []struct{ ports, want int }{{20, 20}, {21, 21}, {5000, 21}} {
		s := servicetest.New(func(s *corev1.Service) {
			s.Spec.Ports = nil
			for i := range r.ports {
				s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: fmt.Sprint("p", i), Port: int32(i + 1)})
			}
		})
		state := NewState()
		state.Replace("ns/first", time.Unix(0, 0), decide(s))
		if got := state.Replace("ns/second", time.Unix(1, 0), decide(s)); len(got) != r.want {
			t.Errorf("%d keys of another: %d sentences, want %d", r.ports, len(got), r.want)
		}
	}
}

func TestKeepPlaces(t *testing.T) {
	list := func(text string) (out []netip.AddrPort) {
		for _, c := range text {
			out = append(out, netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(c)}), 80))
		}
		return out
	}
	for _, r := range []struct{ had, want, now string }{
		{"", "abc", "abc"}, {"abc", "abc", "abc"}, {"abc", "bc", "cb"}, {"abc", "abcd", "abcd"},
		{"abcd", "bcde", "ebcd"}, {"cba", "abc", "cba"}, {"abc", "", ""}, {"abcd", "d", "d"}, {"ab", "cd", "cd"},
	} {
		if got := keepPlaces(list(r.had), list(r.want)); !slices.Equal(got, list(r.now)) {
			t.Errorf("%q then %q: %v, want %q", r.had, r.want, got, r.now)
		}
	}
}
