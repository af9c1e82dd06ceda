package columns_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/rulestest"
)

// storageModel is what State should know of storage, worked out from all that was set.
type storageModel struct {
	nodes    map[string]*corev1.Node
	segments map[string]*columns.Segment
}

func (m storageModel) of(node *corev1.Node, class string, size int64) (capacity int64, enough bool) {
	for _, g := range m.segments {
		if g.Class == class && g.Nodes.Matches(labels.Set(node.Labels)) && g.Largest >= size {
			capacity, enough = max(capacity, g.Capacity), true
		}
	}
	return capacity, enough
}

// What can be made for a node is what segments say that select it, through any history. A change of a segment concerns
// the nodes that it selects, or selected, and no others.
func TestStorageIsWhatSegmentsSay(t *testing.T) {
	selectors := []string{"", "zone=a", "zone=b", "kubernetes.io/hostname=n3", "disk=ssd,zone=a", "zone in (a,b)",
		"zone!=a", "zone in (b)", "zone", "disk=ssd,disk in (ssd,hdd)"}
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 0))
		s, m := columns.New(1), storageModel{map[string]*corev1.Node{}, map[string]*columns.Segment{}}
		for range 300 {
			name := fmt.Sprintf("n%d", r.IntN(6))
			switch r.IntN(4) {
			case 0:
				s.RemoveNode(name)
				delete(m.nodes, name)
			case 1:
				m.nodes[name] = rulestest.Node(name, rulestest.Labelled("zone", string(rune('a'+r.IntN(3)))))
				if r.IntN(2) == 0 {
					m.nodes[name].Labels["disk"] = "ssd"
				}
				s.SetNode(m.nodes[name])
			default:
				object := fmt.Sprintf("s%d", r.IntN(8))
				selector, err := labels.Parse(selectors[r.IntN(len(selectors))])
				if err != nil {
					t.Fatal(err)
				}
				now := &columns.Segment{Class: fmt.Sprintf("c%d", r.IntN(2)), Nodes: selector,
					Capacity: r.Int64N(4), Largest: r.Int64N(4)}
				if before := m.segments[object]; before != nil && r.IntN(2) == 0 {
					now.Class, now.Nodes = before.Class, before.Nodes
				} else if r.IntN(4) == 0 {
					now = nil
				}
				m.setSegment(t, s, object, now)
			}
			m.compare(t, s)
		}
	}
}

func (m storageModel) setSegment(t *testing.T, s *columns.State, object string, now *columns.Segment) {
	t.Helper()
	before, version := m.segments[object], s.Version()
	s.TakeGains()
	noted, gained := map[string]bool{}, map[string]bool{}
	s.SetStorage(object, now)
	s.ChangedSince(version, func(slot columns.Slot) { noted[s.Name(slot)] = true })
	for _, slot := range s.TakeGains() {
		gained[s.Name(slot)] = true
	}
	for name, n := range m.nodes {
		was := before != nil && before.Nodes.Matches(labels.Set(n.Labels))
		is := now != nil && now.Nodes.Matches(labels.Set(n.Labels))
		same := was == is && (!was || before.Class == now.Class && before.Capacity == now.Capacity &&
			before.Largest == now.Largest)
		if !same && !noted[name] || noted[name] && !was && !is {
			t.Fatalf("%+v becomes %+v: node %s is noted: %v", before, now, name, noted[name])
		}
		if more := is && (!was || before.Class != now.Class || now.Largest > before.Largest); more && !gained[name] {
			t.Fatalf("%+v becomes %+v: no gain for node %s", before, now, name)
		}
	}
	if m.segments[object] = now; now == nil {
		delete(m.segments, object)
	}
}

func (m storageModel) compare(t *testing.T, s *columns.State) {
	t.Helper()
	for name, n := range m.nodes {
		for size := range int64(5) {
			for _, class := range []string{"c0", "c1"} {
				capacity, enough := s.Node(s.Slot(name)).Storage(class, size)
				if want, ok := m.of(n, class, size); capacity != want || enough != ok {
					t.Fatalf("node %s has %d, %v for %d of %s, want %d, %v", name, capacity, enough, size, class,
						want, ok)
				}
			}
		}
	}
}
