package owners

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/randfill"

	"keelson.dev/services/podgc/internal/resources"
)

func TestGraphNamesWhatAChangeAffects(t *testing.T) {
	g := newGraph()
	check := func(what string, got []types.UID, want ...types.UID) {
		t.Helper()
		slices.Sort(got)
		if got = slices.Compact(got); !slices.Equal(got, want) {
			t.Errorf("%s: looks at %v again, want %v", what, got, want)
		}
	}
	check("a dependent before its owner", g.observe(object("pod", ref("rs", true))), "pod")
	check("an object without owners", g.observe(object("rs")))
	check("an update that changes nothing of ours", g.observe(object("pod", ref("rs", true))))
	check("a second dependent of an owner that is there", g.observe(object("pod2", ref("rs", false))))
	check("the owner begins to wait", g.observe(deleting(object("rs"), metav1.FinalizerDeleteDependents)), "pod",
		"pod2", "rs")
	check("a dependent goes while the owner waits", g.remove("pod"), "rs")
	check("the owner goes", g.remove("rs"), "pod2")
	check("an object that was never seen goes", g.remove("nobody"))
	g.remove("pod2")
	if len(g.objects)+len(g.dependents) != 0 {
		t.Errorf("an empty cluster leaves %v %v", g.objects, g.dependents)
	}
}

// Whatever the order of events, the edges are those of the objects that are there.
func TestGraphEdgesFollowTheObjects(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 3))
		g := newGraph()
		for range 60 {
			uid := types.UID(fmt.Sprint(r.IntN(8)))
			if r.IntN(3) == 0 {
				g.remove(uid)
				continue
			}
			o := object(uid)
			for range r.IntN(3) {
				o.Owners = append(o.Owners, ref(types.UID(fmt.Sprint(r.IntN(8))), true))
			}
			g.observe(o)
		}
		want := map[[2]types.UID]bool{}
		for _, o := range g.objects {
			for _, owner := range o.Owners {
				want[[2]types.UID{owner.UID, o.UID}] = true
			}
		}
		edges := 0
		for owner, dependents := range g.dependents {
			for dependent := range dependents {
				edges++
				if !want[[2]types.UID{owner, dependent}] {
					t.Fatalf("seed %d: stale edge %s -> %s", seed, dependent, owner)
				}
			}
		}
		if edges != len(want) {
			t.Fatalf("seed %d: %d edges, want %d", seed, edges, len(want))
		}
	}
}

// What the cache keeps of objects is all that the graph knows of them.
func TestTrimmingChangesNothingInTheGraph(t *testing.T) {
	resource := resources.Resource{GroupVersionResource: schema.GroupVersionResource{Group: "g", Version: "v1",
		Resource: "widgets"}, Kind: "Widget"}
	for seed := range int64(100) {
		whole := &metav1.PartialObjectMetadata{}
		randfill.NewWithSeed(seed).NilChance(.3).NumElements(0, 2).Fill(&whole.ObjectMeta)
		kept, err := trim(whole.DeepCopy())
		if err != nil {
			t.Fatal(err)
		}
		if got, want := objectOf(kept.(metav1.Object), resource), objectOf(whole, resource); !reflect.DeepEqual(got,
			want) {
			t.Fatalf("seed %d: of what is kept %+v, of all %+v", seed, got, want)
		}
	}
}

// A ring of foreground deletions is a circle up to a length that nobody makes by mistake; a longer one costs no more.
func TestCirclesAreBounded(t *testing.T) {
	for length, want := range map[int]int{2: 2, longestCircle: longestCircle, longestCircle + 1: 0, 20_000: 0} {
		g := newGraph()
		for i := range length {
			g.observe(deleting(object(types.UID(fmt.Sprint(i)), ref(types.UID(fmt.Sprint((i+1)%length)), true)),
				metav1.FinalizerDeleteDependents))
		}
		if got := len(g.circle(g.objects["0"])); got != want {
			t.Errorf("a ring of %d: a circle of %d, want %d", length, got, want)
		}
		if most := testing.AllocsPerRun(1, func() { g.circle(g.objects["0"]) }); most > 20*longestCircle {
			t.Errorf("a ring of %d takes %v allocations", length, most)
		}
	}
}
