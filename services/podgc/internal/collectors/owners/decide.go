// Package owners deletes what its owners leave behind, in the three ways of the API: in the background (the owner
// goes first), in the foreground (its dependents go first) and orphaning (they stay and forget it).
package owners

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// OwnerState says what is known of one owner that an object names.
type OwnerState int

// An owner's states.
const (
	// Unknown: the owner has not been looked up yet; the object waits.
	Unknown OwnerState = iota
	// Present: it exists and stays, or its deletion does not wait for this object.
	Present
	// Waiting: it exists and its foreground deletion waits for its dependents.
	Waiting
	// Absent: it does not exist, which the server has confirmed.
	Absent
)

// Input is what a decision about one object builds on. Nothing in it is changed.
type Input struct {
	Object *Object
	// Owners holds the state of every owner that the object names.
	Owners map[types.UID]OwnerState
	// Dependents are the observed objects that name this one, sorted by UID.
	Dependents []*Object
	// Circle holds the objects whose foreground deletions wait for each other, this one among them; nil without a
	// circle.
	Circle map[types.UID]bool
	// Beside are the dependents of the others in the circle.
	Beside []*Object
}

// Plan is what to do about one object. At most one of its parts is set, except Release, which may accompany any of
// them.
type Plan struct {
	// Lookup names the owners whose state must be found out first.
	Lookup []metav1.OwnerReference
	// Delete asks for a graceful deletion with this propagation.
	Delete *metav1.DeletionPropagation
	// KeepOwners is the new list of owners; nil leaves the list alone.
	KeepOwners []metav1.OwnerReference
	// DropFinalizer names a finalizer of this collector whose work is done.
	DropFinalizer string
	// Release lists the dependents that must forget this object.
	Release []*Object
	// Revisit lists dependents to decide on now, because this object waits for them.
	Revisit []types.UID
}

// Decide plans what to do about one object.
func Decide(in Input) Plan {
	switch {
	case in.Object.isOrphaning():
		return decideOrphaning(in)
	case in.Object.isForeground():
		return decideForeground(in)
	case in.Object.Deleting:
		return Plan{}
	default:
		return decideOwned(in)
	}
}

// decideOrphaning lets the dependents go first and the finalizer after them.
func decideOrphaning(in Input) Plan {
	if len(in.Dependents) > 0 {
		return Plan{Release: in.Dependents}
	}
	return Plan{DropFinalizer: metav1.FinalizerOrphanDependents}
}

// decideForeground lets the object go when no dependent holds it back. Dependents that do not hold it back are
// deleted too, but nobody waits for them. In a circle nobody waits for each other, but all wait for what holds any
// of them back.
func decideForeground(in Input) Plan {
	if !isHeldBack(in) {
		return Plan{DropFinalizer: metav1.FinalizerDeleteDependents}
	}
	plan := Plan{}
	for _, d := range in.Dependents {
		if !d.Deleting {
			plan.Revisit = append(plan.Revisit, d.UID)
		}
	}
	return plan
}

func isHeldBack(in Input) bool {
	holds := in.holder()
	return slices.ContainsFunc(in.Dependents, holds) || slices.ContainsFunc(in.Beside, holds)
}

// holder says of dependents whether they hold back the object, or the circle that it is in.
func (in Input) holder() func(*Object) bool {
	waiting := in.Circle
	if waiting == nil {
		waiting = map[types.UID]bool{in.Object.UID: true}
	}
	return func(d *Object) bool { return !in.Circle[d.UID] && holdsBack(d, waiting) }
}

// holdsBack reports whether the dependent holds back one of the owners.
func holdsBack(dependent *Object, owners map[types.UID]bool) bool {
	return slices.ContainsFunc(dependent.Owners, func(r metav1.OwnerReference) bool {
		return owners[r.UID] && blocks(r)
	})
}

func blocks(r metav1.OwnerReference) bool {
	return r.BlockOwnerDeletion != nil && *r.BlockOwnerDeletion
}

// decideOwned deletes an object that has lost all its owners. While one is left, it only forgets the others.
func decideOwned(in Input) Plan {
	if len(in.Object.Owners) == 0 {
		return Plan{}
	}
	byState := map[OwnerState][]metav1.OwnerReference{}
	for _, ref := range in.Object.Owners {
		state := in.Owners[ref.UID]
		byState[state] = append(byState[state], ref)
	}
	switch {
	case len(byState[Unknown]) > 0:
		return Plan{Lookup: byState[Unknown]}
	case len(byState[Present]) == len(in.Object.Owners):
		return Plan{}
	case len(byState[Present]) > 0:
		return Plan{KeepOwners: byState[Present]}
	case len(byState[Waiting]) > 0 && len(in.Dependents) > 0:
		// Its owner waits for everything below it, so it waits for its own dependents.
		return Plan{Delete: propagation(metav1.DeletePropagationForeground)}
	default:
		return Plan{Delete: propagation(ownPropagation(in.Object))}
	}
}

// ownPropagation honours what the object's own finalizers ask for.
func ownPropagation(o *Object) metav1.DeletionPropagation {
	switch {
	case o.has(metav1.FinalizerOrphanDependents):
		return metav1.DeletePropagationOrphan
	case o.has(metav1.FinalizerDeleteDependents):
		return metav1.DeletePropagationForeground
	default:
		return metav1.DeletePropagationBackground
	}
}

func propagation(p metav1.DeletionPropagation) *metav1.DeletionPropagation { return &p }
