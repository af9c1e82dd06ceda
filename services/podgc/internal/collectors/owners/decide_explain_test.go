package owners

import (
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

func of(kind string, o *Object) *Object {
	o.Kind, o.Resource = kind, schema.GroupVersionResource{Version: "v1"}
	return o
}

// What is told is what is done, and who has to do the rest.
func TestAccount(t *testing.T) {
	const (
		foreground = metav1.FinalizerDeleteDependents
		orphan     = metav1.FinalizerOrphanDependents
		byHand     = "it ends when they do; where nobody does any more, take it off by hand with kubectl edit"
		settled    = "waits for nothing: "
		round      = "; it is one of 2 owners that wait for each other in a circle, and waits for what holds back " +
			"any of them"
		going = "; it ends when they are gone: this collector deletes those that are not deleted yet, and who " +
			"is responsible for a finalizer takes it off"
	)
	a, b := ref("a", true), ref("b", false)
	child, loose := object("child", ref("x", true)), object("loose", ref("x", false))
	itself := deleting(object("x", ref("x", true)), foreground)
	ring, other := deleting(object("x", ref("y", true)), foreground), deleting(object("y", ref("x", true)), foreground)
	var many []*Object
	for i := range 6 {
		many = append(many, object(types.UID(fmt.Sprint("d", i)), ref("x", true)))
	}
	for _, row := range []struct {
		name    string
		in      Input
		doubts  map[types.UID]string
		summary string
		facts   []string
	}{
		{"nobody's", Input{Object: object("x")}, nil,
			settled + "it has no owner and stays until somebody deletes it", nil},
		{"with dependents", Input{Object: object("x"), Dependents: []*Object{child, loose}}, nil,
			settled + "it has no owner and stays until somebody deletes it; its dependents go after it unless other " +
				"owners keep them: Thing child, Thing loose", nil},
		{"with five dependents", Input{Object: object("x"), Dependents: many[:5]}, nil,
			settled + "it has no owner and stays until somebody deletes it; its dependents go after it unless other " +
				"owners keep them: Thing d0, Thing d1, Thing d2, Thing d3, Thing d4", nil},
		{"with six dependents", Input{Object: object("x"), Dependents: many}, nil,
			settled + "it has no owner and stays until somebody deletes it; its dependents go after it unless other " +
				"owners keep them: Thing d0, Thing d1, Thing d2, Thing d3, Thing d4 and 1 more", nil},
		{"owned", Input{Object: object("x", a, b), Owners: map[types.UID]OwnerState{"a": Present, "b": Present}}, nil,
			settled + "it stays as long as one of its owners does: Thing a, Thing b", nil},
		{"DEP-167 its owners do not stay", Input{Object: object("x", a, b),
			Owners: map[types.UID]OwnerState{"a": Absent, "b": Waiting}}, nil,
			"in its next pass deletes it, as none of its owners stays: Thing a is gone, Thing b is being deleted and " +
				"waits for its dependents",
			[]string{"Next: deletes it, as none of its owners stays: Thing a is gone, Thing b is being deleted and " +
				"waits for its dependents"}},
		{"one of its owners is gone", Input{Object: object("x", a, b),
			Owners: map[types.UID]OwnerState{"a": Absent, "b": Present}}, nil,
			"in its next pass has it forget owners that do not stay: Thing a is gone; it stays for Thing b",
			[]string{"Next: has it forget owners that do not stay: Thing a is gone; it stays for Thing b"}},
		{"nobody can tell", Input{Object: object("x", a), Owners: map[types.UID]OwnerState{}},
			map[types.UID]string{"a": "kind Thing of v1 is not served"},
			"waits for word of its owner Thing a: kind Thing of v1 is not served",
			[]string{"OwnerUnknown: waits for word of its owner Thing a: kind Thing of v1 is not served; it ends " +
				"when the apiserver says whether that is there; the object stays until then"}},
		{"its owner is where it cannot be", Input{Object: object("x", a),
			Owners: map[types.UID]OwnerState{"a": Present}}, map[types.UID]string{"a": "elsewhere"},
			"waits for somebody to take off its reference to the owner Thing a, which is never found: elsewhere",
			[]string{"OwnerMisplaced: waits for somebody to take off its reference to the owner Thing a, which is " +
				"never found: elsewhere; it ends when that is done, or the object is deleted"}},

		{"nothing keeps it", Input{Object: deleting(object("x", a))}, nil,
			settled + "no finalizer keeps it, so it is about to be gone", nil},
		{"a Pod ends", Input{Object: of("Pod", deleting(object("x")))}, nil, "waits for its node to end it",
			[]string{"Terminating: waits for its node to end it; it ends when its containers have stopped, which the " +
				"nodeagent tells the apiserver"}},
		{"a namespace is emptied", Input{Object: of("Namespace", deleting(object("x")))}, nil,
			"waits for the collector namespace to empty it", []string{"Terminating: waits for the collector " +
				"namespace to empty it; it ends when nothing is left in it"}},
		{"finalizers", Input{Object: of("Pod", deleting(object("x"), "kubernetes.io/pvc-protection",
			"example.com/hold"))}, nil,
			"waits for podgc's collector pvcprotection to take off the finalizer kubernetes.io/pvc-protection; " +
				"waits for whoever is responsible for the finalizer example.com/hold to take it off", []string{
				"FinalizerRemains: waits for podgc's collector pvcprotection to take off the finalizer " +
					"kubernetes.io/pvc-protection; it ends when no Pod that may run uses the claim",
				"FinalizerRemains: waits for whoever is responsible for the finalizer example.com/hold to take it " +
					"off; " + byHand}},
		{"DEP-169 dependents hold it back", Input{Object: deleting(object("x"), foreground, "example.com/hold"),
			Dependents: []*Object{child, loose, deleting(object("late", ref("x", true))),
				deleting(object("stuck", ref("x", true)), "example.com/a", "example.com/b")}}, nil,
			"waits for 3 dependents to be gone whose owner references say blockOwnerDeletion: Thing child " +
				"(not deleted yet), Thing late (being deleted), Thing stuck (being deleted, kept by example.com/a, " +
				"example.com/b); waits for whoever is responsible for the finalizer example.com/hold to take it off",
			[]string{"DependentsRemain: waits for 3 dependents to be gone whose owner references say " +
				"blockOwnerDeletion: Thing child (not deleted yet), Thing late (being deleted), Thing stuck (being " +
				"deleted, kept by example.com/a, example.com/b)" + going,
				"FinalizerRemains: waits for whoever is responsible for the finalizer example.com/hold to take it " +
					"off; " + byHand}},
		{"DEP-169 nothing holds it back", Input{Object: deleting(object("x"), foreground),
			Dependents: []*Object{loose}}, nil,
			"in its next pass takes off the finalizer foregroundDeletion: no dependent holds it back",
			[]string{"Next: takes off the finalizer foregroundDeletion: no dependent holds it back"}},
		{"it owns itself", Input{Object: itself, Dependents: []*Object{itself}, Circle: map[types.UID]bool{"x": true}},
			nil, "in its next pass takes off the finalizer foregroundDeletion: no dependent holds it back",
			[]string{"Next: takes off the finalizer foregroundDeletion: no dependent holds it back"}},
		{"in a circle", Input{Object: ring, Dependents: []*Object{other},
			Circle: map[types.UID]bool{"x": true, "y": true},
			Beside: []*Object{ring, object("leaf", ref("y", true))}}, nil,
			"waits for 1 dependent to be gone whose owner references say blockOwnerDeletion: Thing leaf (not deleted " +
				"yet)" + round,
			[]string{"DependentsRemain: waits for 1 dependent to be gone whose owner references say " +
				"blockOwnerDeletion: Thing leaf (not deleted yet)" + round + going}},
		{"held back twice by one", Input{Object: ring,
			Dependents: []*Object{object("d", ref("x", true), ref("y", true))},
			Circle:     map[types.UID]bool{"x": true, "y": true},
			Beside:     []*Object{object("d", ref("x", true), ref("y", true))}}, nil,
			"waits for 1 dependent to be gone whose owner references say blockOwnerDeletion: Thing d (not deleted " +
				"yet)" + round,
			[]string{"DependentsRemain: waits for 1 dependent to be gone whose owner references say " +
				"blockOwnerDeletion: Thing d (not deleted yet)" + round + going}},
		{"DEP-172 orphaning", Input{Object: deleting(object("x"), foreground, orphan),
			Dependents: []*Object{child}}, nil,
			"in its next pass takes it off the owner references of its dependents, so that they stay: Thing child",
			[]string{"Next: takes it off the owner references of its dependents, so that they stay: Thing child"}},
		{"DEP-172 orphaned", Input{Object: deleting(object("x"), orphan)}, nil,
			"in its next pass takes off the finalizer orphan: nothing names it as an owner any more",
			[]string{"Next: takes off the finalizer orphan: nothing names it as an owner any more"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			e := account(row.in, Decide(row.in), row.doubts).Explanation()
			var facts []string
			for _, fact := range e.Facts {
				facts = append(facts, fact.Reason+": "+fact.Message)
			}
			if e.Summary != row.summary || !slices.Equal(facts, row.facts) {
				t.Errorf("got  %s\n%q\nwant %s\n%q", e.Summary, facts, row.summary, row.facts)
			}
		})
	}
}
