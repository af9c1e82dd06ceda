package owners

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func ref(uid types.UID, blocks bool) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "v1", Kind: "Thing", Name: string(uid), UID: uid,
		BlockOwnerDeletion: &blocks}
}

func object(uid types.UID, owners ...metav1.OwnerReference) *Object {
	return &Object{UID: uid, Name: string(uid), Kind: "Thing", Owners: owners}
}

func deleting(o *Object, finalizers ...string) *Object {
	o.Deleting, o.Finalizers = true, finalizers
	return o
}

func finalized(o *Object, finalizers ...string) *Object {
	o.Finalizers = finalizers
	return o
}

func TestDecide(t *testing.T) {
	const (
		foreground = metav1.FinalizerDeleteDependents
		orphan     = metav1.FinalizerOrphanDependents
	)
	a, b := ref("a", true), ref("b", true)
	child, loose := object("child", ref("x", true)), object("loose", ref("x", false))
	itself, circle := deleting(object("x", ref("x", true)), foreground), map[types.UID]bool{"x": true, "y": true}
	ring, other := deleting(object("x", ref("y", true)), foreground), deleting(object("y", ref("x", true)), foreground)
	tests := map[string]struct {
		in   Input
		want Plan
	}{
		"no owners": {Input{Object: object("x")}, Plan{}},
		"owner not looked at": {
			Input{Object: object("x", a, b), Owners: map[types.UID]OwnerState{"b": Absent}},
			Plan{Lookup: []metav1.OwnerReference{a}},
		},
		"all owners there": {Input{Object: object("x", a), Owners: map[types.UID]OwnerState{"a": Present}}, Plan{}},
		"one of two owners gone": {
			Input{Object: object("x", a, b), Owners: map[types.UID]OwnerState{"a": Absent, "b": Present}},
			Plan{KeepOwners: []metav1.OwnerReference{b}},
		},
		"one of two owners waits: the other keeps it": {
			Input{Object: object("x", a, b), Owners: map[types.UID]OwnerState{"a": Waiting, "b": Present}},
			Plan{KeepOwners: []metav1.OwnerReference{b}},
		},
		"DEP-031 DEP-167 DEP-168 all owners gone": {
			Input{Object: object("x", a, b), Owners: map[types.UID]OwnerState{"a": Absent, "b": Absent}},
			Plan{Delete: propagation(metav1.DeletePropagationBackground)},
		},
		"DEP-168 all owners gone and it has dependents: nobody waits for them": {
			Input{Object: object("x", a), Owners: map[types.UID]OwnerState{"a": Absent}, Dependents: []*Object{child}},
			Plan{Delete: propagation(metav1.DeletePropagationBackground)},
		},
		"all owners gone, its own finalizer orphans": {
			Input{Object: finalized(object("x", a), orphan), Owners: map[types.UID]OwnerState{"a": Absent}},
			Plan{Delete: propagation(metav1.DeletePropagationOrphan)},
		},
		"all owners gone, its own finalizer waits": {
			Input{Object: finalized(object("x", a), foreground), Owners: map[types.UID]OwnerState{"a": Absent}},
			Plan{Delete: propagation(metav1.DeletePropagationForeground)},
		},
		"DEP-169 owner waits and it has dependents": {
			Input{Object: object("x", a), Owners: map[types.UID]OwnerState{"a": Waiting}, Dependents: []*Object{loose}},
			Plan{Delete: propagation(metav1.DeletePropagationForeground)},
		},
		"DEP-169 owner waits and it is a leaf": {
			Input{Object: object("x", a), Owners: map[types.UID]OwnerState{"a": Waiting}},
			Plan{Delete: propagation(metav1.DeletePropagationBackground)},
		},
		"being deleted without our finalizers": {
			Input{Object: deleting(object("x", a), "other/finalizer"), Owners: map[types.UID]OwnerState{"a": Absent}},
			Plan{},
		},
		"DEP-169 foreground with a dependent that blocks": {
			Input{Object: deleting(object("x"), foreground), Dependents: []*Object{child, loose}},
			Plan{Revisit: []types.UID{"child", "loose"}},
		},
		"foreground with a blocking dependent on its way out": {
			Input{Object: deleting(object("x"), foreground),
				Dependents: []*Object{deleting(object("c", ref("x", true)))}}, Plan{},
		},
		"DEP-169 foreground with dependents that do not block": {
			Input{Object: deleting(object("x"), foreground), Dependents: []*Object{loose}},
			Plan{DropFinalizer: foreground},
		},
		"DEP-169 foreground with a dependent that itself waits for its dependents": {
			Input{Object: deleting(object("x"), foreground), Dependents: []*Object{deleting(object("c", ref("x", true)),
				foreground)}}, Plan{},
		},
		"foreground of what owns itself": {
			Input{Object: itself, Dependents: []*Object{itself}, Circle: map[types.UID]bool{"x": true}},
			Plan{DropFinalizer: foreground},
		},
		"foreground in a circle": {
			Input{Object: ring, Dependents: []*Object{other}, Circle: circle, Beside: []*Object{ring}},
			Plan{DropFinalizer: foreground},
		},
		"foreground in a circle, one of which waits for another dependent": {
			Input{Object: ring, Dependents: []*Object{other}, Circle: circle,
				Beside: []*Object{ring, object("leaf", ref("y", true))}}, Plan{},
		},
		"DEP-172 orphaning with dependents": {
			Input{Object: deleting(object("x"), orphan), Dependents: []*Object{child}}, Plan{Release: []*Object{child}},
		},
		"DEP-172 orphaning is done": {Input{Object: deleting(object("x"), orphan)}, Plan{DropFinalizer: orphan}},
		"orphaning wins over foreground": {
			Input{Object: deleting(object("x"), foreground, orphan), Dependents: []*Object{child}},
			Plan{Release: []*Object{child}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Decide(test.in); !reflect.DeepEqual(got, test.want) {
				t.Errorf("got  %+v\nwant %+v", got, test.want)
			}
		})
	}
}

// An object with an owner that exists, or has not been looked up, is never deleted.
func TestAnOwnedObjectIsNeverDeleted(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 2))
		x := object("x")
		owners := map[types.UID]OwnerState{}
		for i := range 1 + r.IntN(4) {
			uid := types.UID(fmt.Sprint("o", i))
			x.Owners = append(x.Owners, ref(uid, r.IntN(2) == 0))
			owners[uid] = OwnerState(r.IntN(4))
		}
		in := Input{Object: x, Owners: owners}
		if r.IntN(2) == 0 {
			in.Dependents = []*Object{object("d", ref("x", true))}
		}
		plan := Decide(in)
		for uid, state := range owners {
			if (state == Present || state == Unknown) && plan.Delete != nil {
				t.Fatalf("seed %d: deleted although %s is %d", seed, uid, state)
			}
			kept := slices.ContainsFunc(plan.KeepOwners, func(k metav1.OwnerReference) bool { return k.UID == uid })
			if plan.KeepOwners != nil && kept != (state == Present) {
				t.Fatalf("seed %d: owner %s in state %d kept: %v", seed, uid, state, kept)
			}
		}
		if !reflect.DeepEqual(plan, Decide(in)) {
			t.Fatalf("seed %d: two decisions differ", seed)
		}
	}
}
