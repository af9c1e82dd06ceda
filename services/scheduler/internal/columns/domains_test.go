package columns

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

const zone = "topology.kubernetes.io/zone"

func selecting(text string) []labels.Selector {
	selector, err := labels.Parse(text)
	if err != nil {
		panic(err)
	}
	return []labels.Selector{selector}
}

// domainNode returns a node with these labels; an empty value leaves the label out.
func domainNode(name string, set map[string]string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
	for key, value := range set {
		if value != "" {
			n.Labels[key] = value
		}
	}
	return n
}

func labelled(uid types.UID, set map[string]string) *corev1.Pod {
	p := identified(uid)
	p.Labels, p.Namespace = set, "default"
	return p
}

// domainsWorld is a State and the objects that it has heard of.
type domainsWorld struct {
	*State
	nodes map[string]*corev1.Node
	pods  map[types.UID]*corev1.Pod
	specs map[types.UID][]TermSpec
}

func (w *domainsWorld) step(g *rand.Rand, specs []TermSpec) {
	name := fmt.Sprintf("n%d", g.IntN(8))
	uid := types.UID(fmt.Sprintf("p%d", g.IntN(30)))
	switch g.IntN(10) {
	case 0, 1:
		w.nodes[name] = domainNode(name, map[string]string{zone: []string{"a", "b", "c", ""}[g.IntN(4)],
			corev1.LabelHostname: []string{name, name, "shared", ""}[g.IntN(4)],
			"disk":               []string{"ssd", ""}[g.IntN(2)]})
		w.SetNode(w.nodes[name])
	case 2:
		delete(w.nodes, name)
		w.RemoveNode(name)
	case 3:
		delete(w.pods, uid)
		delete(w.specs, uid)
		w.RemovePod(uid)
		w.Carry(uid, nil)
	case 4: // waits for a node
		delete(w.pods, uid)
		w.RemovePod(uid)
	default:
		p := labelled(uid, map[string]string{"app": []string{"web", "db"}[g.IntN(2)], "i": fmt.Sprint(g.IntN(9))})
		p.Namespace = []string{"default", "other"}[g.IntN(2)]
		if g.IntN(4) == 0 {
			p.DeletionTimestamp = &metav1.Time{}
		}
		p.Spec.NodeName = name
		w.pods[uid], w.specs[uid] = p, specs[:g.IntN(len(specs)+1)]
		if g.IntN(2) == 0 {
			w.Carry(uid, w.specs[uid])
			w.SetPod(p, name, w.Usage(p))
		} else {
			w.SetPod(p, name, w.Usage(p))
			w.Carry(uid, w.specs[uid])
		}
	}
}

// counted returns the count by domain, looking at every object.
func (w *domainsWorld) counted(c Count, without ...types.UID) (pods map[string]int, total int) {
	pods = map[string]int{}
	for _, n := range w.nodes {
		value, ok := n.Labels[c.Term.TopologyKey]
		if !ok || c.Scope != nil && n.Labels["disk"] == "" {
			continue
		}
		pods[value] += 0
		for uid, p := range w.pods {
			if p.Spec.NodeName != n.Name || slices.Contains(without, uid) {
				continue
			}
			counts := 0
			if c.Carriers {
				for i := range w.specs[uid] {
					if w.specs[uid][i].key() == c.Term.TermSpec.key() {
						counts++
					}
				}
			} else if c.Term.Selects(p) {
				counts++
			}
			pods[value] += counts
			total += counts
		}
	}
	return pods, total
}

func (w *domainsWorld) check(t *testing.T, g *rand.Rand, d *Domains) {
	t.Helper()
	for name, n := range w.nodes {
		for _, without := range [][]types.UID{nil, {types.UID(fmt.Sprintf("p%d", g.IntN(30))), "p1", "p2", "p3"}} {
			there := slices.DeleteFunc(slices.Clone(without), func(uid types.UID) bool {
				return w.pods[uid] == nil || w.pods[uid].Spec.NodeName != name
			})
			pods, total := w.counted(d.Count, there...)
			value, exists := n.Labels[d.Term.TopologyKey]
			want := Domain{Exists: exists, Pods: pods[value], Domains: len(pods), Total: total}
			if len(pods) > 0 {
				want.Least = slices.Min(slices.Collect(maps.Values(pods)))
			}
			at := w.Node(w.Slot(name))
			if without != nil {
				at = w.NodeWithout(w.Slot(name), without...)
			}
			if got := at.Domain(d); got != want {
				t.Fatalf("%s of %s without %v: node %s is in %+v, want %+v", d.Term.TopologyKey, d.Term.Purpose, there,
					name, got, want)
			}
		}
	}
}

// checkJournal sees that a step notes every node whose cell it changes.
func (w *domainsWorld) checkJournal(t *testing.T, kept map[string]*Domains, step func()) {
	t.Helper()
	type place struct{ domains, node string }
	cells := func() map[place]Cell {
		out := map[place]Cell{}
		for key, d := range kept {
			for name := range w.nodes {
				if slot := w.Slot(name); slot != None && w.Known(slot) {
					out[place{key, name}] = d.Cell(slot)
				}
			}
		}
		return out
	}
	before, version := cells(), w.Version()
	step()
	noted := map[string]bool{}
	w.ChangedSince(version, func(slot Slot) { noted[w.Name(slot)] = true })
	for at, cell := range cells() {
		if old, ok := before[at]; ok && old != cell && !noted[at.node] {
			t.Fatalf("node %s went from cell %d to %d of %s and is not in the journal", at.node, old, cell, at.domains)
		}
	}
}

// Through random histories the counts by domain are those of looking at every node and Pod, also on a node that is
// without some of its Pods.
func TestDomainsAgreeWithCountingEveryPod(t *testing.T) {
	scope := &Scope{Key: "disk", Has: func(v View) bool { return v.Labels["disk"] != "" }}
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			g := rand.New(rand.NewPCG(seed, 3))
			w := &domainsWorld{State: New(seed), nodes: map[string]*corev1.Node{}, pods: map[types.UID]*corev1.Pod{},
				specs: map[types.UID][]TermSpec{}}
			specs := []TermSpec{
				{Purpose: "web", TopologyKey: zone, Selectors: selecting("app=web")},
				{Purpose: "web", TopologyKey: corev1.LabelHostname, Selectors: selecting("app in (web,db)"),
					Namespaces: []string{"default"}},
				{Purpose: "live", TopologyKey: zone, Selectors: selecting("i,i notin (1,2)"), LiveOnly: true},
				{Purpose: "all", TopologyKey: corev1.LabelHostname, Selectors: []labels.Selector{labels.Everything()}},
			}
			specs = append(specs, specs[0]) // a Pod may say it twice
			terms := w.Carry("keeps", specs)
			kept := map[string]*Domains{}
			for range 300 {
				w.checkJournal(t, kept, func() { w.step(g, specs) })
				count := Count{Term: terms[g.IntN(4)], Carriers: g.IntN(2) == 0}
				if g.IntN(2) == 0 {
					count.Scope = scope
				}
				d := w.Domains(count)
				w.check(t, g, d)
				if other := kept[d.key]; other != nil && other != d {
					t.Fatal("there are two counts of one thing")
				}
				if kept[d.key] != nil || g.IntN(3) == 0 {
					d.Release()
				} else {
					kept[d.key] = d // stays up to date from now on
				}
				for _, d := range kept {
					if g.IntN(16) == 0 {
						w.check(t, g, d)
					}
				}
			}
			for _, d := range kept {
				d.Release()
			}
			if len(w.domains) != 0 || len(terms[0].domains) != 0 {
				t.Errorf("%d counts are kept that nobody reads", len(w.domains))
			}
		})
	}
}

// A node that changes its cell is in the journal; one that stays in its cell is not, however many Pods its domain gets.
func TestCellsChangeWithTheirNode(t *testing.T) {
	s := New(0)
	for _, name := range []string{"n", "m", "s1", "s2"} {
		host := name
		if name[0] == 's' {
			host = "shared"
		}
		s.SetNode(domainNode(name, map[string]string{zone: "a", corev1.LabelHostname: host}))
	}
	terms := s.Carry("x", []TermSpec{{TopologyKey: zone, Selectors: selecting("app=web")},
		{TopologyKey: corev1.LabelHostname, Selectors: selecting("app=web")}})
	byZone, byHost := s.Domains(Count{Term: terms[0]}), s.Domains(Count{Term: terms[1]})
	changed := func(what func()) []string {
		version := s.Version()
		what()
		var names []string
		s.ChangedSince(version, func(slot Slot) { names = append(names, s.Name(slot)) })
		slices.Sort(names)
		return slices.Compact(names)
	}
	cells := func(d *Domains) (out []Cell) {
		for _, name := range []string{"n", "m", "s1", "s2"} {
			out = append(out, d.Cell(s.Slot(name)))
		}
		return out
	}
	web := labelled("p", map[string]string{"app": "web"})
	zones, versions := cells(byZone), byZone.Version()
	if got := changed(func() { s.SetPod(web, "n", s.Usage(web)) }); !slices.Equal(got, []string{"n"}) {
		t.Errorf("a Pod on n changed %v", got)
	}
	if !slices.Equal(cells(byZone), zones) || byZone.Version() == versions {
		t.Errorf("cells by zone are %v, were %v; the version is %d", cells(byZone), zones, byZone.Version())
	}
	if got := cells(byHost); !slices.Equal(got, []Cell{2, 1, 1, 1}) {
		t.Errorf("cells by hostname are %v", got)
	}
	db := labelled("p", map[string]string{"app": "db"})
	if got := changed(func() { s.SetPod(db, "n", s.Usage(db)) }); !slices.Equal(got, []string{"n"}) {
		t.Errorf("a Pod that was relabelled changed %v", got)
	}
	same := labelled("p", map[string]string{"app": "db"})
	if got := changed(func() { s.SetPod(same, "n", s.Usage(same)) }); len(got) != 0 {
		t.Errorf("a Pod that did not change changed %v", got)
	}
	other := labelled("q", map[string]string{"app": "web"})
	if got := changed(func() { s.SetPod(other, "s2", s.Usage(other)) }); !slices.Equal(got, []string{"s1", "s2"}) {
		t.Errorf("a Pod on one of two nodes of a hostname changed %v", got)
	}
	if got := cells(byHost); !slices.Equal(got, []Cell{1, 1, 2, 2}) {
		t.Errorf("cells by hostname are %v", got)
	}
	if got := byHost.At(2); got != (Domain{Exists: true, Pods: 1, Domains: 3, Total: 1}) {
		t.Errorf("the domain of cell 2 is %+v", got)
	}
	if got := byZone.At(0); got != (Domain{Least: 1, Domains: 1, Total: 1}) {
		t.Errorf("the domain of a node without one is %+v", got)
	}
}

// Values that no node has any more take no memory.
func TestDomainsThatAreGoneAreForgotten(t *testing.T) {
	s := New(0)
	d := s.Domains(Count{Term: s.Carry("x", []TermSpec{{TopologyKey: zone, Selectors: selecting("a=b")}})[0]})
	for i := range 1000 {
		s.SetNode(domainNode("n", map[string]string{zone: fmt.Sprint(i)}))
	}
	if len(d.list) > 3 || len(d.numbers) != 1 || d.At(d.Cell(s.Slot("n"))).Domains != 1 {
		t.Errorf("%d domains are kept, %d by value", len(d.list)-1, len(d.numbers))
	}
}
