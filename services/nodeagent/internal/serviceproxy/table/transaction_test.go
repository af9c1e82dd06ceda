package table

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"

	"keelson.dev/services/nodeagent/internal/serviceproxy/plan"
	"keelson.dev/services/nodeagent/internal/serviceproxy/servicetest"
)

// model applies transactions as the kernel does: it refuses a reference to something that does not exist, and the
// removal of a chain to which something leads.
type model struct {
	exists bool
	sets   map[string]map[string]nftables.SetElement
	chains map[string][][]expr.Any
}

func (m *model) run(x Transaction) error {
	for i, s := range x.Steps {
		if err := m.step(s); err != nil {
			return fmt.Errorf("step %d: %T: %w", i, s, err)
		}
	}
	return m.check()
}

func (m *model) step(step Step) error {
	switch s := step.(type) {
	case AddTable:
		if !m.exists {
			*m = model{true, map[string]map[string]nftables.SetElement{}, map[string][][]expr.Any{}}
		}
	case DeleteTable:
		*m = model{}
	case AddSet:
		if m.sets[s.Name] == nil {
			m.sets[s.Name] = map[string]nftables.SetElement{}
		}
	case FlushSet:
		clear(m.sets[s.Name])
	case AddChain:
		m.chains[s.Name] = slices.Clip(m.chains[s.Name])
	case FlushChain:
		m.chains[s.Name] = nil
	case DeleteChain:
		if _, there := m.chains[s.Name]; !there {
			return fmt.Errorf("the chain %s is not there", s.Name)
		}
		delete(m.chains, s.Name)
	case AddRule:
		m.chains[s.Chain.Name] = append(m.chains[s.Chain.Name], s.Exprs)
	case AddElements:
		return m.addElements(s)
	case DeleteElements:
		for _, e := range s.Elements {
			if _, there := m.sets[s.Set.Name][string(e.Key)]; !there {
				return fmt.Errorf("%s has no %x", s.Set.Name, e.Key)
			}
			delete(m.sets[s.Set.Name], string(e.Key))
		}
	}
	return nil
}

func (m *model) addElements(s AddElements) error {
	for _, e := range s.Elements {
		if _, there := m.sets[s.Set.Name][string(e.Key)]; there || len(s.Elements) > perMessage {
			return fmt.Errorf("%s has %x, or there are %d of them", s.Set.Name, e.Key, len(s.Elements))
		}
		m.sets[s.Set.Name][string(e.Key)] = e
	}
	return nil
}

// check checks that everything that rules and elements name exists.
func (m *model) check() error {
	leads := func(v *expr.Verdict) error {
		if _, there := m.chains[v.Chain]; v.Chain != "" && !there {
			return fmt.Errorf("something leads to the chain %s, which is not there", v.Chain)
		}
		return nil
	}
	for chain, rules := range m.chains {
		for _, e := range slices.Concat(rules...) {
			switch e := e.(type) {
			case *expr.Verdict:
				if err := leads(e); err != nil {
					return fmt.Errorf("%s: %w", chain, err)
				}
			case *expr.Lookup:
				if m.sets[e.SetName] == nil {
					return fmt.Errorf("%s looks into %s, which is not there", chain, e.SetName)
				}
			}
		}
	}
	for name, set := range m.sets {
		for _, e := range set {
			if e.VerdictData == nil {
				continue
			}
			if err := leads(e.VerdictData); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}

// found returns what the next agent finds.
func (m *model) found() Found {
	out := Found{Elements: Elements{}, Chains: slices.Sorted(maps.Keys(m.chains))}
	for _, name := range followed {
		for _, r := range families {
			values := map[string]string{}
			for key, e := range m.sets[r.name(name)] {
				values[key] = string(e.Val)
			}
			out.Elements[r.name(name)] = values
		}
	}
	return out
}

// sizes counts the rules and elements of each chain and set.
func (m *model) sizes() map[string]int {
	out := map[string]int{}
	for name, rules := range m.chains {
		out["chain "+name] = len(rules)
	}
	for name, set := range m.sets {
		out["set "+name] = len(set)
	}
	return out
}

// However Services change, the transactions lead to the same table as one created for the result. Each transaction
// names only what exists, and one that finds the table as it should be touches no element.
func TestTransactionsLeadToTheWhole(t *testing.T) {
	named := Table{"test"}
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 3))
		state, node := NewState(), plan.Node{}
		step := func() {
			number := r.IntN(4)
			name := fmt.Sprint("s", number)
			s, all := servicetest.Random(r, name, number)
			state.Replace(name, s.CreationTimestamp.Time, decide(s, all...))
		}
		step()
		m := &model{}
		if err := m.run(named.Create(state.Ruleset(node))); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		state.Commit()
		for i := range 20 {
			step()
			ruleset := state.Ruleset(node)
			x := named.Change(state.Changes(), node)
			if i%5 == 4 { // another agent
				x = named.Update(m.found(), ruleset)
			}
			if err := m.run(x); err != nil {
				t.Fatalf("seed %d, change %d: %v", seed, i, err)
			}
			state.Commit()
			anew := &model{}
			if err := anew.run(named.Create(ruleset)); err != nil {
				t.Fatalf("seed %d, change %d, made anew: %v", seed, i, err)
			}
			if !reflect.DeepEqual(m.found(), anew.found()) || !maps.Equal(m.sizes(), anew.sizes()) {
				t.Fatalf("seed %d, change %d: %v, want %v", seed, i, m.found(), anew.found())
			}
			if got := named.Update(m.found(), ruleset).Elements; got != 0 {
				t.Fatalf("seed %d, change %d: %d elements of a table change that is as it should be", seed, i, got)
			}
		}
	}
}
