package columns

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// anyTerm selects by a value, by some, by a label of any value, by others than a value, or all; in some namespaces or
// all.
func anyTerm(r *rand.Rand, i int) TermSpec {
	selectors := []string{"app=a", "app in (a,b)", "app", "app!=a", "", "app=a,tier=b", "tier in (a,c),app"}
	spec := TermSpec{Purpose: fmt.Sprint(i), TopologyKey: zone, LiveOnly: r.IntN(2) == 0,
		Selectors: selecting(selectors[r.IntN(len(selectors))])}
	switch r.IntN(3) {
	case 0:
		spec.Namespaces = []string{"n0", "n1"}
	case 1:
		spec.In = []NamespaceSet{{Names: []string{"n0"}, Selector: selecting("team=a")[0]}}
	}
	return spec
}

func anyPod(r *rand.Rand) *corev1.Pod {
	value := func() string { return string(rune('a' + r.IntN(3))) }
	p := labelled(types.UID(fmt.Sprint(r.IntN(40))), map[string]string{"app": value()})
	if p.Namespace = fmt.Sprint("n", r.IntN(3)); r.IntN(2) == 0 {
		p.Labels["tier"] = value()
	}
	if r.IntN(4) == 0 {
		p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	}
	return p
}

// A term that is new counts the Pods that it selects, whatever has come, gone, moved and changed before; what is kept
// for it goes with the Pods.
func TestANewTermCountsWhatItSelects(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := New(0)
		for i := range 4 {
			s.SetNode(domainNode(fmt.Sprint(i), map[string]string{zone: "z"}))
		}
		for step := range 300 {
			switch r.IntN(8) {
			case 0:
				s.RemovePod(types.UID(fmt.Sprint(r.IntN(40))))
			case 1:
				s.SetNamespace(fmt.Sprint("n", r.IntN(3)), labels.Set{"team": string(rune('a' + r.IntN(2)))})
			case 2:
				term := s.Carry("x", []TermSpec{anyTerm(r, step)})[0]
				want := map[Slot]int32{}
				for _, at := range s.pods {
					if term.Selects(at.pod) {
						want[at.slot]++
					}
				}
				if got := s.selectedByNode(term); !maps.Equal(got, want) {
					t.Fatalf("seed %d, step %d: %+v selects %v, want %v", seed, step, term.TermSpec, got, want)
				}
			default:
				p := anyPod(r)
				s.SetPod(p, fmt.Sprint(r.IntN(4)), s.Usage(p))
			}
		}
		for i := range 40 {
			s.RemovePod(types.UID(fmt.Sprint(i)))
		}
		if len(s.selections.byKey)+len(s.selections.byLabel) > 0 {
			t.Fatalf("seed %d: without Pods %v is left", seed, s.selections)
		}
	}
}

// shops returns a State of Pods of so many templates, each with a label of its own.
func shops(pods, templates int) *State {
	s := New(0)
	for i := range 1000 {
		s.SetNode(domainNode(fmt.Sprint(i), map[string]string{zone: fmt.Sprint(i % 3)}))
	}
	for i := range pods {
		p := labelled(types.UID(fmt.Sprint(i)), map[string]string{"app": fmt.Sprint(i % templates), "tier": "web"})
		s.SetPod(p, fmt.Sprint(i%1000), s.Usage(p))
	}
	return s
}

// A new term looks at the Pods of its own template, however many others there are.
func TestANewTermLooksAtNoOthers(t *testing.T) {
	s := shops(5000, 500)
	for selector, want := range map[string]int{"app=7": 1, "app in (7,8)": 2, "tier=web,app=7": 1, "app=none": 0} {
		term := s.Carry("x", []TermSpec{{TopologyKey: zone, Selectors: selecting(selector)}})[0]
		s.selectedByNode(term)
		looked := 0
		for a := range s.selections.among(term) {
			looked++
			if a.pods != 10 {
				t.Errorf("%d Pods of a template are counted, want 10", a.pods)
			}
		}
		if looked != want {
			t.Errorf("%s looks at %d templates, want %d", selector, looked, want)
		}
	}
}

// BenchmarkNewTerm measures the cost of a selector that no Pod had before: it selects ten of so many Pods.
func BenchmarkNewTerm(b *testing.B) {
	for _, pods := range []int{10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("pods=%d", pods), func(b *testing.B) {
			s, i := shops(pods, pods/10), 0
			s.selectedByNode(s.Carry("y", []TermSpec{{Selectors: selecting("app=none")}})[0])
			for b.Loop() {
				i++
				term := s.Carry("x", []TermSpec{{TopologyKey: zone, Purpose: fmt.Sprint(i),
					Selectors: selecting(fmt.Sprint("app=", i%(pods/10)))}})[0]
				s.Domains(Count{Term: term}).Release()
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N), "us/op")
		})
	}
}
