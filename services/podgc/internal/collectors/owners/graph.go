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

// has says whether the object holds the finalizer.
func (o *Object) has(finalizer string) bool { return slices.Contains(o.Finalizers, finalizer) }

// isForeground says whether the object waits for its dependents to go first.
func (o *Object) isForeground() bool {
	return o.Deleting && o.has(metav1.FinalizerDeleteDependents)
}

// isOrphaning says whether the object waits for its dependents to be let go.
func (o *Object) isOrphaning() bool {
	return o.Deleting && o.has(metav1.FinalizerOrphanDependents)
}

// graph knows every observed object and who depends on whom, also on owners that were never observed. It is not safe for
// concurrent use.
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
	if old != nil {
		g.unlink(old)
	}
	for _, owner := range o.Owners {
		if g.dependents[owner.UID] == nil {
			g.dependents[owner.UID] = map[types.UID]struct{}{}
		}
		g.dependents[owner.UID][o.UID] = struct{}{}
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
