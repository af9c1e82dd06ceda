package owners

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Object is what the collector knows of one API object. It is never changed once it is in the graph.
type Object struct {
	UID             types.UID
	Resource        schema.GroupVersionResource
	Kind            string
	Namespace, Name string
	ResourceVersion string
	Owners          []metav1.OwnerReference
	Finalizers      []string
	// Deleting says that it has a deletion timestamp.
	Deleting bool
}

// has reports whether the object holds the finalizer.
func (o *Object) has(finalizer string) bool { return slices.Contains(o.Finalizers, finalizer) }

// isForeground reports whether the object waits for its dependents to go first.
func (o *Object) isForeground() bool {
	return o.Deleting && o.has(metav1.FinalizerDeleteDependents)
}

// isOrphaning reports whether the object waits for its dependents to be let go.
func (o *Object) isOrphaning() bool {
	return o.Deleting && o.has(metav1.FinalizerOrphanDependents)
}

// graph knows every observed object and who depends on whom, also on owners that were never observed. It is not safe
// for concurrent use.
type graph struct {
	objects map[types.UID]*Object
	// dependents holds, by the owner's UID, the UIDs of the observed objects that name it.
	dependents map[types.UID]map[types.UID]struct{}
}

func newGraph() *graph {
	return &graph{objects: map[types.UID]*Object{}, dependents: map[types.UID]map[types.UID]struct{}{}}
}

// observe adds the object or replaces what was known of it, and returns the UIDs to look at again.
func (g *graph) observe(o *Object) []types.UID {
	old := g.objects[o.UID]
	g.objects[o.UID] = o
	if old == nil || !slices.EqualFunc(old.Owners, o.Owners, sameOwner) {
		if old != nil {
			g.unlink(old)
		}
		g.link(o)
	}
	return g.affectedByChange(old, o)
}

// remove forgets an object that is gone, and returns the UIDs to look at again.
func (g *graph) remove(uid types.UID) []types.UID {
	old := g.objects[uid]
	if old == nil {
		return nil
	}
	delete(g.objects, uid)
	g.unlink(old)
	affected := g.dependentUIDs(uid)
	return append(affected, g.waitingOwners(old)...)
}

// dependentUIDs returns the UIDs of what names the owner, sorted.
func (g *graph) dependentUIDs(owner types.UID) []types.UID {
	return slices.Sorted(maps.Keys(g.dependents[owner]))
}

// input returns what a decision about one object builds on, or false for an object that was never observed.
func (g *graph) input(uid types.UID) (Input, bool) {
	object := g.objects[uid]
	if object == nil {
		return Input{}, false
	}
	in := Input{Object: object, Owners: make(map[types.UID]OwnerState, len(object.Owners)),
		Dependents: g.dependentsOf(uid)}
	for _, ref := range object.Owners {
		if owner := g.objects[ref.UID]; owner != nil {
			in.Owners[ref.UID] = stateOf(owner.isForeground())
		}
	}
	in.Circle = g.circle(object)
	for uid := range in.Circle {
		if uid != object.UID {
			in.Beside = append(in.Beside, g.dependentsOf(uid)...)
		}
	}
	return in, true
}

// longestCircle bounds how many objects are looked at for a circle each time that one of them changes, whoever made
// them. Those of a longer one wait until a user breaks it up.
const longestCircle = 1000

// circle returns the objects whose foreground deletions wait for the object's and that it waits for, itself among
// them; nil without a circle.
func (g *graph) circle(object *Object) map[types.UID]bool {
	if !object.isForeground() {
		return nil
	}
	// waiting are those that wait for the object, directly or through others; holds are who holds each back.
	waiting, holds := map[types.UID]bool{}, map[types.UID][]types.UID{}
	for next := []*Object{object}; len(next) > 0; next = next[1:] {
		for _, ref := range next[0].Owners {
			owner := g.objects[ref.UID]
			if owner == nil || !owner.isForeground() || !blocks(ref) {
				continue
			}
			holds[ref.UID] = append(holds[ref.UID], next[0].UID)
			if !waiting[ref.UID] {
				waiting[ref.UID] = true
				next = append(next, owner)
			}
		}
		if len(waiting) > longestCircle {
			return nil
		}
	}
	if !waiting[object.UID] {
		return nil
	}
	circle := map[types.UID]bool{object.UID: true}
	for next := []types.UID{object.UID}; len(next) > 0; next = next[1:] {
		for _, uid := range holds[next[0]] {
			if waiting[uid] && !circle[uid] {
				circle[uid] = true
				next = append(next, uid)
			}
		}
	}
	return circle
}

func (g *graph) dependentsOf(owner types.UID) []*Object {
	var dependents []*Object
	for _, uid := range g.dependentUIDs(owner) {
		dependents = append(dependents, g.objects[uid])
	}
	return dependents
}

func sameOwner(a, b metav1.OwnerReference) bool { return a.UID == b.UID }

func (g *graph) link(o *Object) {
	for _, owner := range o.Owners {
		if g.dependents[owner.UID] == nil {
			g.dependents[owner.UID] = map[types.UID]struct{}{}
		}
		g.dependents[owner.UID][o.UID] = struct{}{}
	}
}

func (g *graph) unlink(o *Object) {
	for _, owner := range o.Owners {
		delete(g.dependents[owner.UID], o.UID)
		if len(g.dependents[owner.UID]) == 0 {
			delete(g.dependents, owner.UID)
		}
	}
}

// affectedByChange keeps the cost of an ordinary update at nothing: only changes that can alter a decision count.
func (g *graph) affectedByChange(old, o *Object) []types.UID {
	var affected []types.UID
	unobserved := slices.ContainsFunc(o.Owners, func(r metav1.OwnerReference) bool { return g.objects[r.UID] == nil })
	ownersWait := slices.ContainsFunc(o.Owners, func(r metav1.OwnerReference) bool {
		owner := g.objects[r.UID]
		return owner != nil && (owner.isForeground() || owner.isOrphaning())
	})
	if unobserved || ownersWait || o.isForeground() || o.isOrphaning() {
		affected = append(affected, o.UID)
	}
	if o.isForeground() && (old == nil || !old.isForeground()) {
		affected = append(affected, g.dependentUIDs(o.UID)...)
	}
	if old != nil {
		affected = append(affected, g.waitingOwners(old)...)
	}
	return affected
}

// waitingOwners returns the owners that a change of their dependent can release.
func (g *graph) waitingOwners(dependent *Object) []types.UID {
	var waiting []types.UID
	for _, ref := range dependent.Owners {
		if owner := g.objects[ref.UID]; owner != nil && (owner.isForeground() || owner.isOrphaning()) {
			waiting = append(waiting, owner.UID)
		}
	}
	return waiting
}
