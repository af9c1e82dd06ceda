package columns

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// web returns what TermSpecs in these tests select by.
func web(key string) TermSpec { return TermSpec{TopologyKey: key, Selectors: selecting("app=web")} }

// twoZones returns nodes a and b in zone1, x and y in zone2, z in none, and 2, 1, 0 and 4 Pods of the label app=web on
// the first four.
func twoZones() *State {
	s := New(0)
	for name, value := range map[string]string{"a": "zone1", "b": "zone1", "x": "zone2", "y": "zone2", "z": ""} {
		s.SetNode(domainNode(name, map[string]string{zone: value, corev1.LabelHostname: name}))
	}
	for i, name := range []string{"a", "a", "b", "y", "y", "y", "y"} {
		p := labelled(types.UID(fmt.Sprint(i)), map[string]string{"app": "web"})
		s.SetPod(p, name, s.Usage(p))
	}
	return s
}

func inDomain(pods, least, domains, total int) Domain {
	return Domain{Exists: true, Pods: pods, Least: least, Domains: domains, Total: total}
}

// The same Pods counted by zone, by host, by a label that one node has, and on some nodes only.
func TestCounts(t *testing.T) {
	only := func(names ...string) *Scope {
		return &Scope{Key: fmt.Sprint(names), Has: func(v View) bool {
			for _, name := range names {
				if v.Name == name {
					return true
				}
			}
			return false
		}}
	}
	for name, test := range map[string]struct {
		key   string
		scope *Scope
		want  map[string]Domain
	}{
		"by zone": {zone, nil, map[string]Domain{
			"a": inDomain(3, 3, 2, 7), "b": inDomain(3, 3, 2, 7), "x": inDomain(4, 3, 2, 7), "y": inDomain(4, 3, 2, 7),
			"z": {Least: 3, Domains: 2, Total: 7}}},
		"by host": {corev1.LabelHostname, nil, map[string]Domain{
			"a": inDomain(2, 0, 5, 7), "b": inDomain(1, 0, 5, 7), "x": inDomain(0, 0, 5, 7), "y": inDomain(4, 0, 5, 7),
			"z": inDomain(0, 0, 5, 7)}},
		"by host, without the empty ones": {corev1.LabelHostname, only("a", "b", "y"), map[string]Domain{
			"a": inDomain(2, 1, 3, 7), "b": inDomain(1, 1, 3, 7), "x": inDomain(0, 1, 3, 7),
			"y": inDomain(4, 1, 3, 7)}},
		"by a label that no node has": {"rack", nil, map[string]Domain{"a": {}, "z": {}}},
		"on no node":                  {zone, only(), map[string]Domain{"a": inDomain(0, 0, 0, 0), "z": {}}},
		"on one node of each zone": {zone, only("b", "x"), map[string]Domain{
			"a": inDomain(1, 0, 2, 1), "b": inDomain(1, 0, 2, 1), "x": inDomain(0, 0, 2, 1), "y": inDomain(0, 0, 2, 1),
			"z": {Least: 0, Domains: 2, Total: 1}}},
		"on one zone": {zone, only("x", "y", "z"), map[string]Domain{
			"a": inDomain(0, 4, 1, 4), "x": inDomain(4, 4, 1, 4), "z": {Least: 4, Domains: 1, Total: 4}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := twoZones()
			d := s.Domains(Count{Term: s.Carry("x", []TermSpec{web(test.key)})[0], Scope: test.scope})
			for node, want := range test.want {
				slot := s.Slot(node)
				if got := s.Node(slot).Domain(d); got != want {
					t.Errorf("node %s is in %+v, want %+v", node, got, want)
				}
				if got := d.At(d.Cell(slot)); got != want {
					t.Errorf("the cell of node %s is in %+v, want %+v", node, got, want)
				}
			}
		})
	}
}

// What Pods and nodes do to the domain of node a.
func TestCountsFollow(t *testing.T) {
	put := func(s *State, uid types.UID, node string, change ...func(*corev1.Pod)) {
		p := labelled(uid, map[string]string{"app": "web"})
		for _, c := range change {
			c(p)
		}
		s.SetPod(p, node, s.Usage(p))
	}
	asDB := func(p *corev1.Pod) { p.Labels = map[string]string{"app": "db"} }
	elsewhere := func(p *corev1.Pod) { p.Namespace = "other" }
	deleted := func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }
	move := func(s *State, name, to string) {
		s.SetNode(domainNode(name, map[string]string{zone: to, corev1.LabelHostname: name}))
	}
	for name, test := range map[string]struct {
		event func(*State)
		want  Domain // of node a
	}{
		"nothing":                    {func(*State) {}, inDomain(3, 3, 2, 7)},
		"a Pod comes":                {func(s *State) { put(s, "new", "a") }, inDomain(4, 4, 2, 8)},
		"a Pod comes to the other":   {func(s *State) { put(s, "new", "x") }, inDomain(3, 3, 2, 8)},
		"a Pod of another label":     {func(s *State) { put(s, "new", "a", asDB) }, inDomain(3, 3, 2, 7)},
		"a Pod of another namespace": {func(s *State) { put(s, "new", "a", elsewhere) }, inDomain(3, 3, 2, 7)},
		"a Pod that is being deleted": {func(s *State) { put(s, "new", "a", deleted) },
			inDomain(3, 3, 2, 7)},
		"a Pod goes":           {func(s *State) { s.RemovePod("0") }, inDomain(2, 2, 2, 6)},
		"a Pod goes elsewhere": {func(s *State) { s.RemovePod("3") }, inDomain(3, 3, 2, 6)},
		"a Pod is seen again":  {func(s *State) { put(s, "0", "a") }, inDomain(3, 3, 2, 7)},
		"a Pod is relabelled":  {func(s *State) { put(s, "0", "a", asDB) }, inDomain(2, 2, 2, 6)},
		"a Pod begins to end":  {func(s *State) { put(s, "0", "a", deleted) }, inDomain(2, 2, 2, 6)},
		"a Pod ends and was ended": {func(s *State) { put(s, "0", "a", deleted); s.RemovePod("0") },
			inDomain(2, 2, 2, 6)},
		"a Pod moves":             {func(s *State) { put(s, "0", "y") }, inDomain(2, 2, 2, 7)},
		"a Pod moves and changes": {func(s *State) { put(s, "0", "y", asDB) }, inDomain(2, 2, 2, 6)},
		"a Pod to no known node":  {func(s *State) { put(s, "0", "ghost") }, inDomain(2, 2, 2, 6)},
		"that node comes": {func(s *State) {
			put(s, "0", "ghost")
			move(s, "ghost", "zone3")
		}, inDomain(2, 1, 3, 7)},
		"an empty zone comes":    {func(s *State) { move(s, "z", "zone3") }, inDomain(3, 0, 3, 7)},
		"and goes":               {func(s *State) { move(s, "z", "zone3"); s.RemoveNode("z") }, inDomain(3, 3, 2, 7)},
		"its neighbour moves":    {func(s *State) { move(s, "b", "zone2") }, inDomain(2, 2, 2, 7)},
		"its neighbour goes":     {func(s *State) { s.RemoveNode("b") }, inDomain(2, 2, 2, 6)},
		"its neighbour has none": {func(s *State) { move(s, "b", "") }, inDomain(2, 2, 2, 6)},
		"it moves":               {func(s *State) { move(s, "a", "zone2") }, inDomain(6, 1, 2, 7)},
		"it moves alone":         {func(s *State) { move(s, "a", "zone9") }, inDomain(2, 1, 3, 7)},
		"it returns": {func(s *State) {
			s.RemoveNode("a")
			move(s, "a", "zone1")
		}, inDomain(3, 3, 2, 7)},
		"the other zone goes": {func(s *State) {
			s.RemoveNode("x")
			s.RemoveNode("y")
		}, inDomain(3, 3, 1, 3)},
	} {
		t.Run(name, func(t *testing.T) {
			s := twoZones()
			spec := web(zone)
			spec.Namespaces, spec.LiveOnly = []string{"default"}, true
			count := Count{Term: s.Carry("x", []TermSpec{spec})[0]}
			d := s.Domains(count)
			test.event(s)
			if got := s.Node(s.Slot("a")).Domain(d); got != test.want {
				t.Errorf("node a is in %+v, want %+v", got, test.want)
			}
			d.Release()
			if fresh := s.Domains(count); fresh == d || s.Node(s.Slot("a")).Domain(fresh) != test.want {
				t.Errorf("counted anew node a is in %+v, want %+v", s.Node(s.Slot("a")).Domain(fresh), test.want)
			}
		})
	}
}

// Carriers count where they are, as often as they carry the term, whatever their labels.
func TestCarriersCount(t *testing.T) {
	s := twoZones()
	spec := web(zone)
	term := s.Carry("0", []TermSpec{spec})[0]
	d := s.Domains(Count{Term: term, Carriers: true})
	for step, test := range []struct {
		event func()
		want  Domain // of node a
	}{
		{func() {}, inDomain(1, 0, 2, 1)},
		{func() { s.Carry("waits", []TermSpec{spec}) }, inDomain(1, 0, 2, 1)},
		{func() { s.SetPod(identified("waits"), "b", s.Usage(identified("waits"))) }, inDomain(2, 0, 2, 2)},
		{func() { s.Carry("3", []TermSpec{spec, spec}) }, inDomain(2, 2, 2, 4)},
		{func() { s.Carry("3", []TermSpec{spec}) }, inDomain(2, 1, 2, 3)},
		{func() { s.Carry("3", []TermSpec{web(corev1.LabelHostname)}) }, inDomain(2, 0, 2, 2)},
		{func() { s.RemovePod("waits") }, inDomain(1, 0, 2, 1)},
		{func() { s.Carry("0", nil) }, inDomain(0, 0, 2, 0)},
	} {
		test.event()
		if got := s.Node(s.Slot("a")).Domain(d); got != test.want {
			t.Errorf("step %d: node a is in %+v, want %+v", step, got, test.want)
		}
	}
	if !term.Carried() {
		t.Error("the term is dropped that a Pod without a node carries")
	}
}

// Counts are kept once for all that ask for the same, until the last of them gives them back.
func TestCountsAreShared(t *testing.T) {
	s := twoZones()
	terms := s.Carry("x", []TermSpec{web(zone), web(corev1.LabelHostname)})
	disk := func(key string) *Scope { return &Scope{Key: key, Has: func(View) bool { return true }} }
	counts := []Count{{Term: terms[0]}, {Term: terms[1]}, {Term: terms[0], Carriers: true},
		{Term: terms[0], Scope: disk("ssd")}, {Term: terms[0], Scope: disk("hdd")}, {Term: terms[0], Scope: disk("")}}
	for i, a := range counts {
		for j, b := range counts {
			first, second := s.Domains(a), s.Domains(b)
			if same := first == second; same != (i == j) || a.Same(b) != (i == j) {
				t.Errorf("counts %d and %d are one: %v, the same: %v", i, j, same, a.Same(b))
			}
			first.Release()
			if i == j && s.Domains(a) != second {
				t.Errorf("count %d went with the first of its readers", i)
			} else if i == j {
				second.Release()
			}
			if second.Release(); len(s.domains) != 0 {
				t.Fatalf("%d counts are kept that nobody reads", len(s.domains))
			}
		}
	}
	again := Count{Term: terms[0], Scope: disk("ssd")}
	if !again.Same(counts[3]) {
		t.Error("two scopes of one key are two")
	}
}

// The least count is right through any sequence of counts in three domains.
func TestLeast(t *testing.T) {
	s := New(0)
	for _, name := range []string{"a", "b", "c"} {
		s.SetNode(domainNode(name, map[string]string{zone: name}))
	}
	d := s.Domains(Count{Term: s.Carry("x", []TermSpec{web(zone)})[0]})
	n := 0
	last := map[string][]types.UID{}
	for i, test := range []struct {
		come, leave string
		want        int
	}{
		{"a", "", 0}, {"b", "", 0}, {"c", "", 1}, {"c", "", 1}, {"a", "", 1}, {"b", "", 2}, {"b", "", 2},
		{"", "a", 1}, {"", "a", 0}, {"", "b", 0}, {"a", "", 1}, {"a", "", 2}, {"a", "", 2}, {"", "c", 1}, {"", "c", 0},
	} {
		if test.come != "" {
			n++
			p := labelled(types.UID(fmt.Sprint(n)), map[string]string{"app": "web"})
			s.SetPod(p, test.come, s.Usage(p))
			last[test.come] = append(last[test.come], p.UID)
		} else {
			on := last[test.leave]
			s.RemovePod(on[len(on)-1])
			last[test.leave] = on[:len(on)-1]
		}
		if got := d.At(0).Least; got != test.want {
			t.Errorf("step %d: the least count is %d, want %d", i, got, test.want)
		}
	}
	for i, want := range []int{2, 2, 0} { // c has none, b 2, a 3
		s.RemoveNode([]string{"c", "a", "b"}[i])
		if got := d.At(0); got.Least != want || got.Domains != 2-i {
			t.Errorf("after %d nodes are gone the least of %d is %d, want %d", i+1, got.Domains, got.Least, want)
		}
	}
}

// The least count after each update, where the spec keeps two critical paths: its vectors, and where two paths would
// not do. An update gives a domain so many Pods; one that is new comes with them.
func TestLeastAfterEachUpdate(t *testing.T) {
	type update struct {
		domain      string
		pods, least int
	}
	for name, updates := range map[string][]update{
		"SCH-112: the vector": {{"zone1", 3, 3}, {"zone2", 4, 3}, {"zone1", 5, 4}, {"zone3", 4, 4}, {"zone4", 9, 4},
			{"zone4", 1, 1}},
		"SCH-113: the vector, where the second path is not the second least": {{"a", 0, 0}, {"b", 1, 0}, {"c", 2, 0},
			{"b", 5, 0}},
		"SCH-114: two domains change": {{"a", 0, 0}, {"b", 1, 0}, {"c", 2, 0}, {"b", 5, 0}, {"a", 7, 2}, {"c", 6, 5}},
		"SCH-110: the first is the least whichever comes first": {{"a", 9, 9}, {"b", 7, 7}, {"c", 8, 7}, {"b", 8, 8},
			{"a", 0, 0}, {"a", 9, 8}},
		"SCH-111: a known domain passes the other": {{"a", 1, 1}, {"b", 2, 1}, {"a", 3, 2}, {"a", 1, 1}},
		"SCH-111: less than the least":             {{"a", 3, 3}, {"b", 5, 3}, {"c", 2, 2}, {"c", 4, 3}},
		"SCH-111: less than the second":            {{"a", 3, 3}, {"b", 5, 3}, {"c", 4, 3}, {"a", 6, 4}},
		"SCH-111: less than neither":               {{"a", 3, 3}, {"b", 5, 3}, {"c", 5, 3}, {"c", 6, 3}, {"a", 5, 5}},
	} {
		t.Run(name, func(t *testing.T) {
			s := New(0)
			d := s.Domains(Count{Term: s.Carry("x", []TermSpec{web(zone)})[0]})
			if got := d.At(0); got.Domains != 0 || got.Total != 0 {
				t.Fatalf("before any domain: %+v", got)
			}
			pods := map[string]int{}
			for i, u := range updates {
				uid := func(n int) types.UID { return types.UID(fmt.Sprintf("%s-%d", u.domain, n)) }
				pods[u.domain] += 0
				for ; pods[u.domain] < u.pods; pods[u.domain]++ {
					p := labelled(uid(pods[u.domain]), map[string]string{"app": "web"})
					s.SetPod(p, u.domain, s.Usage(p))
				}
				for ; pods[u.domain] > u.pods; pods[u.domain]-- {
					s.RemovePod(uid(pods[u.domain] - 1))
				}
				s.SetNode(domainNode(u.domain, map[string]string{zone: u.domain}))
				got := s.Node(s.Slot(u.domain)).Domain(d)
				if got.Least != u.least || got.Pods != u.pods || got.Domains != len(pods) {
					t.Errorf("update %d: %+v, want %d Pods, %d at least, %d domains", i, got, u.pods, u.least,
						len(pods))
				}
			}
		})
	}
}
