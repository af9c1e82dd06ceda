package class_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/scheduler/internal/class"
	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/rules"
	"keelson.dev/services/scheduler/internal/rulestest"
)

// size reads a number from a node's label, 0 where it has none.
func size(v columns.View, label string) int64 {
	var n int64
	_, _ = fmt.Sscan(v.Labels[label], &n)
	return n
}

// arithmetic is a profile of rules that are easy to compute again. What a Pod's class depends on stands in its
// selector.
func arithmetic(t *testing.T) rules.Profile {
	number := func(p rules.Pod, label string) (n int64) {
		if _, err := fmt.Sscan(p.Spec.NodeSelector[label], &n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	scored := func(weight int64, order rules.Order, judge rules.Judge[int64]) rules.Rule {
		return rules.Rule{Weight: weight, Score: func(rules.Pod) *rules.Score {
			return &rules.Score{Judge: judge,
				Order: order}
		}}
	}
	return rules.Profile{Name: "arithmetic", Rules: []rules.Rule{
		{
			Key: func(b []byte, p rules.Pod) []byte {
				return append(append(b, p.Spec.NodeSelector["min"]...), p.Spec.NodeSelector["named"]...)
			},
			Filter: func(p rules.Pod) *rules.Filter {
				least := number(p, "min")
				refuse := func(v columns.View) (r rules.Reasons) {
					if size(v, "a") < least {
						r |= 1
					}
					if size(v, "b") < least {
						r |= 2
					}
					return r
				}
				f := &rules.Filter{Texts: []string{"a too small", "b too small"}, Judge: rules.ByShape(refuse)}
				if number(p, "named") > 0 {
					f.Judge = rules.ByName(func(v columns.View) rules.Reasons {
						if strings.HasSuffix(v.Name, "7") {
							return 2
						}
						return refuse(v)
					})
				}
				return f
			},
		},
		{Filter: func(p rules.Pod) *rules.Filter {
			return &rules.Filter{Texts: []string{"b too small", "too few cpus", "too many pods"},
				Judge: rules.ByRoom(func(n columns.Node) (r rules.Reasons) {
					if n.Free(columns.CPU) < p.Usage.Basic[columns.CPU] {
						r |= 2
					}
					if n.Free(columns.Pods) < 1 {
						r |= 4
					}
					return r
				})}
		}},
		scored(2, rules.HigherIsBetter, rules.ByShape(func(v columns.View) int64 { return size(v, "a") })),
		scored(3, rules.LowerIsBetter, rules.ByShape(func(v columns.View) int64 { return size(v, "b") })),
		scored(1, rules.HighestIsBest, rules.ByShape(func(v columns.View) int64 {
			return size(v, "a") - 2*size(v,
				"b")
		})),
		scored(1, rules.HigherIsBetter, rules.ByRoom(func(n columns.Node) int64 { return n.Free(columns.Pods) % 3 })),
		scored(2, rules.HigherIsBetter, rules.ByRoom(func(n columns.Node) int64 { return n.Free(columns.CPU) / 1000 })),
	}}
}

// naive judges every node by every rule, keeps nothing, and compares all that a class says with it.
func naive(t *testing.T, profile rules.Profile, s *columns.State, c *class.Class) {
	t.Helper()
	judgement := profile.Make(c.Pod)
	refused, raw := map[string]int{}, map[columns.Slot][]int64{}
	for slot := range columns.Slot(s.Slots()) {
		if !s.Known(slot) {
			continue
		}
		texts := refusals(judgement, s, slot)
		for _, text := range texts {
			refused[text]++
		}
		var said []string
		for _, r := range c.Judge(s, s.Node(slot)) {
			said = append(said, r.Text)
		}
		if slices.Sort(texts); !slices.Equal(said, texts) {
			t.Fatalf("node %s is refused for %q, want %q", s.Name(slot), said, texts)
		}
		if len(texts) == 0 {
			for _, score := range judgement.Scores {
				if score.Judge.On() == rules.OnRoom {
					raw[slot] = append(raw[slot], score.Judge.Node(s.Node(slot)))
				} else {
					raw[slot] = append(raw[slot], score.Judge.View(s.View(slot)))
				}
			}
		}
	}
	got := map[string]int{}
	for _, r := range c.Refusals(s) {
		got[r.Text] = r.Nodes
	}
	if !maps.Equal(got, refused) {
		t.Fatalf("refusals are %v, want %v", got, refused)
	}
	choice, ok := c.Best(s)
	if want, any := best(judgement, s, raw); ok != any || ok && choice != want {
		t.Fatalf("best is %+v, %v, want %+v, %v", choice, ok, want, any)
	}
	if n := c.Feasible(s); n != len(raw) {
		t.Fatalf("%d nodes are feasible, want %d", n, len(raw))
	}
}

// refusals returns the texts of the first filter that refuses: those by the node's description come first.
func refusals(j rules.Judgement, s *columns.State, slot columns.Slot) []string {
	for _, room := range []bool{false, true} {
		for _, f := range j.Filters {
			var reasons rules.Reasons
			switch on := f.Judge.On(); {
			case room && on == rules.OnRoom:
				reasons = f.Judge.Node(s.Node(slot))
			case !room && on != rules.OnRoom:
				reasons = f.Judge.View(s.View(slot))
			}
			var texts []string
			for i, text := range f.Texts {
				if reasons>>i&1 == 1 {
					texts = append(texts, text)
				}
			}
			if len(texts) > 0 {
				return texts
			}
		}
	}
	return nil
}

// best is the node of the greatest score, then of the fewest Pods, then of the greatest tie-break.
func best(j rules.Judgement, s *columns.State, raw map[columns.Slot][]int64) (class.Choice, bool) {
	choice := class.Choice{Score: -1, Feasible: len(raw)}
	for _, slot := range slices.Sorted(maps.Keys(raw)) {
		total := int64(0)
		for i, score := range j.Scores {
			if score.Judge.On() == rules.OnRoom {
				total += score.Weight * raw[slot][i]
				continue
			}
			least, greatest := raw[slot][i], raw[slot][i]
			for _, other := range raw {
				least, greatest = min(least, other[i]), max(greatest, other[i])
			}
			total += score.Weight * score.Order.Normalize(raw[slot][i], least, greatest)
		}
		pods := func(slot columns.Slot) int64 { return s.Node(slot).Room().Used[columns.Pods] }
		better := total > choice.Score
		if total == choice.Score {
			better = pods(slot) < pods(choice.Slot) || pods(slot) == pods(choice.Slot) &&
				s.Tie(slot)>>8 > s.Tie(choice.Slot)>>8
		}
		if better {
			choice.Slot, choice.Score = slot, total
		}
	}
	return choice, len(raw) > 0
}

// Through random histories a class says what judging every node says. SCH-033, SCH-138
func TestAgreesWithJudgingEveryNode(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			g := rand.New(rand.NewPCG(seed, 2))
			profile, s, set := arithmetic(t), columns.New(seed), class.NewSet()
			var classes []*class.Class
			for _, least := range []string{"0", "1", "2"} {
				for _, named := range []string{"0", "1"} {
					p := rulestest.Pod("p", rulestest.Requests(corev1.ResourceCPU, fmt.Sprint(1+g.IntN(2))))
					p.Spec.NodeSelector = map[string]string{"min": least, "named": named}
					classes = append(classes, set.Join(&profile, rules.PodOf(p, s.Usage(p))))
				}
			}
			for step := range 300 {
				for range 1 + g.IntN(4)*g.IntN(8) {
					change(g, s, step)
				}
				for _, c := range classes {
					if g.IntN(3) == 0 {
						set.Touch(c, s)
						naive(t, profile, s, c)
					}
				}
			}
		})
	}
}

// change does one random thing to the State.
func change(g *rand.Rand, s *columns.State, step int) {
	name := fmt.Sprintf("n%d", g.IntN(20+step/10))
	pod := types.UID(fmt.Sprint(g.IntN(150)))
	switch g.IntN(8) {
	case 0, 1:
		s.SetNode(rulestest.Node(name, rulestest.Labelled("a", fmt.Sprint(g.IntN(4))),
			rulestest.Labelled("b", fmt.Sprint(g.IntN(3))),
			rulestest.Allocatable(corev1.ResourceCPU, fmt.Sprint(g.IntN(7)))))
	case 2:
		if g.IntN(3) == 0 {
			s.RemoveNode(name)
		}
	case 3, 4:
		s.RemovePod(pod)
	default:
		p := rulestest.Pod("p", rulestest.Requests(corev1.ResourceCPU, fmt.Sprint(g.IntN(3))))
		s.SetPod(rulestest.Identified(pod), name, s.Usage(p))
	}
}

// There may be more reasons and raw scores than fit in a word: 70 filters of two texts and 9 scores.
func TestManyRules(t *testing.T) {
	s := columns.New(1)
	for i := range 140 {
		s.SetNode(rulestest.Node(fmt.Sprintf("n%03d", i), rulestest.Labelled("a", fmt.Sprint(i))))
	}
	profile := rules.Profile{Name: "many"}
	var want []class.Reason
	for i := range int64(70) {
		texts := []string{fmt.Sprintf("reason %03d", 2*i), fmt.Sprintf("reason %03d", 2*i+1)}
		profile.Rules = append(profile.Rules, rules.Rule{Filter: func(rules.Pod) *rules.Filter {
			return &rules.Filter{Texts: texts, Judge: rules.ByShape(func(v columns.View) rules.Reasons {
				if a := size(v, "a"); a/2 == i {
					return 1 << (a % 2)
				}
				return 0
			})}
		}})
		want = append(want, class.Reason{Text: texts[0], Nodes: 1}, class.Reason{Text: texts[1], Nodes: 1})
	}
	p := rulestest.Pod("p")
	set := class.NewSet()
	if got := set.Join(&profile, rules.PodOf(p, s.Usage(p))).Refusals(s); !reflect.DeepEqual(got, want) {
		t.Errorf("refusals are %v", got)
	}

	scores := rules.Profile{Name: "scores"}
	for i := range int64(9) {
		scores.Rules = append(scores.Rules, rules.Rule{Weight: 1, Score: func(rules.Pod) *rules.Score {
			return &rules.Score{Judge: rules.ByShape(func(v columns.View) int64 { return size(v, "a") >> i & 1 })}
		}})
	}
	// 127 has the most bits of the numbers below 140.
	choice, ok := set.Join(&scores, rules.PodOf(p, s.Usage(p))).Best(s)
	if !ok || s.Name(choice.Slot) != "n127" || choice.Score != 700 || choice.Feasible != 140 {
		t.Errorf("best is %s: %+v", s.Name(choice.Slot), choice)
	}
}

// A hypothetical node is judged as it would be; the class goes on judging the node as it is.
func TestJudgesHypotheticalNodes(t *testing.T) {
	f := newFixture(1)
	large := pod(func(p *corev1.Pod) { rulestest.Requests(corev1.ResourceCPU, "3")(p) })
	c := f.join(large)
	f.state.SetPod(rulestest.Identified("victim"), "n0", f.state.Usage(large))
	slot := f.state.Slot("n0")
	if got := c.Judge(f.state, f.state.NodeWithout(slot, "victim")); len(got) != 0 {
		t.Errorf("without its Pod the node is refused: %v", got)
	}
	want := []class.Reason{{Text: "Insufficient cpu", Nodes: 1}}
	if got := c.Judge(f.state, f.state.Node(slot)); !reflect.DeepEqual(got, want) {
		t.Errorf("as it is the node is refused: %v, want %v", got, want)
	}
	if n := c.Feasible(f.state); n != 0 {
		t.Errorf("%d nodes are feasible", n)
	}
}
