package columns_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/rulestest"
)

// Which images a node has, and how many nodes have each, is what the nodes say, through any history.
func TestImagesAreWhatNodesSay(t *testing.T) {
	names := []string{"a:1", "b:1", "c:1"}
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 0))
		s, nodes := columns.New(1), map[string]*corev1.Node{}
		for range 200 {
			n := rulestest.Node(fmt.Sprintf("n%d", r.IntN(130)))
			if r.IntN(4) == 0 {
				s.RemoveNode(n.Name)
				delete(nodes, n.Name)
				continue
			}
			for range r.IntN(4) {
				n.Status.Images = append(n.Status.Images, corev1.ContainerImage{
					Names: []string{names[r.IntN(3)], "alias:1"}, SizeBytes: 5})
			}
			s.SetNode(n)
			nodes[n.Name] = n
		}
		for i, name := range append(names, "alias:1", "none:1") {
			want := columns.Image{Size: 5, Among: len(nodes)}
			for _, n := range nodes {
				has := false
				for _, image := range n.Status.Images {
					has = has || image.Names[0] == name || image.Names[1] == name
				}
				if has {
					want.Nodes++
				}
				if got := s.Images(s.Slot(n.Name), []string{"x:1", name}); (got == 2) != has || got&1 != 0 {
					t.Fatalf("seed %d: node %s has %s: %b, want %v", seed, n.Name, name, got, has)
				}
			}
			if want.Nodes == 0 {
				want = columns.Image{}
			}
			if got := s.Image(name); got != want {
				t.Fatalf("seed %d: image %d is %+v, want %+v", seed, i, got, want)
			}
		}
	}
}

// A node that says again what images it has is no change; one that pulled an image is, and no Pod fits better.
func TestJournalOfImages(t *testing.T) {
	s := columns.New(1)
	set := func(names ...string) uint64 {
		n := rulestest.Node("n")
		for _, name := range names {
			n.Status.Images = append(n.Status.Images, corev1.ContainerImage{Names: []string{name}, SizeBytes: 1})
		}
		before := s.Version()
		s.SetNode(n)
		return s.Version() - before
	}
	set("a:1", "b:1", "b:1")
	s.TakeGains()
	for i, test := range []struct {
		names []string
		want  uint64
	}{{[]string{"b:1", "a:1"}, 0}, {[]string{"a:1", "b:1", "b:1"}, 0}, {[]string{"a:1", "c:1"}, 1}, {nil, 1}} {
		if got := set(test.names...); got != test.want {
			t.Errorf("%d: %d changes, want %d", i, got, test.want)
		}
	}
	if gains := s.TakeGains(); len(gains) > 0 {
		t.Errorf("gains are %v", gains)
	}
}
