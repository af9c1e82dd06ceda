package owners

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// grace is a finalizer that the world takes off in its own time, as a node does with a Pod that it ends.
const grace = "test.keelson.dev/grace"

// world is an API of owned objects, and a collector that learns of every change late.
type world struct {
	t      *testing.T
	random *rand.Rand
	server map[types.UID]*Object
	// blocks holds, for each object, whose deletion it held back in the beginning, itself or through others.
	blocks map[types.UID]map[types.UID]bool
	// foreground are those that were deleted with their dependents.
	foreground map[types.UID]bool
	graph      *graph
	// late are the changes that the graph has not seen, by object; nil stands for its end.
	late    map[types.UID][]*Object
	queue   map[types.UID]bool
	version int
	log     []string
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{
		t: t, random: rand.New(rand.NewPCG(seed, 9)), server: map[types.UID]*Object{}, graph: newGraph(),
		foreground: map[types.UID]bool{}, late: map[types.UID][]*Object{}, queue: map[types.UID]bool{},
	}
	n := 1 + w.random.IntN(6)
	for i := range n {
		o := object(types.UID(fmt.Sprint(i)))
		for owner := range n {
			if w.random.IntN(n) == 0 {
				o.Owners = append(o.Owners, ref(types.UID(fmt.Sprint(owner)), w.random.IntN(4) > 0))
			}
		}
		if w.random.IntN(3) == 0 {
			o.Finalizers = []string{grace}
		}
		w.write(o)
		w.log = append(w.log, fmt.Sprintf("%s owned by %s, finalizers %v", o.UID, names(o), o.Finalizers))
	}
	w.blocks = reach(w.server)
	w.restart()
	return w
}

func names(o *Object) string {
	var names []string
	for _, r := range o.Owners {
		names = append(names, fmt.Sprintf("%s (blocks %v)", r.UID, *r.BlockOwnerDeletion))
	}
	return strings.Join(names, ", ")
}

// reach follows the references that block as far as they go.
func reach(objects map[types.UID]*Object) map[types.UID]map[types.UID]bool {
	blocks := map[types.UID]map[types.UID]bool{}
	for uid, o := range objects {
		blocks[uid] = map[types.UID]bool{}
		for _, r := range o.Owners {
			if *r.BlockOwnerDeletion {
				blocks[uid][r.UID] = true
			}
		}
	}
	for range objects {
		for uid := range blocks {
			for owner := range maps.Clone(blocks[uid]) {
				maps.Copy(blocks[uid], blocks[owner])
			}
		}
	}
	return blocks
}

// write stores a version of an object; one that is being deleted and that nothing holds any more is gone.
func (w *world) write(o *Object) {
	w.version++
	o.ResourceVersion = fmt.Sprint(w.version)
	if o.Deleting && len(o.Finalizers) == 0 {
		w.log = append(w.log, fmt.Sprint(o.UID, " is gone"))
		delete(w.server, o.UID)
		o = &Object{UID: o.UID}
	} else {
		w.server[o.UID] = o
	}
	w.late[o.UID] = append(w.late[o.UID], o)
}

// delete is the API's answer to a request.
func (w *world) delete(uid types.UID, policy metav1.DeletionPropagation) {
	o := *w.server[uid]
	o.Finalizers = slices.DeleteFunc(slices.Clone(o.Finalizers), func(f string) bool { return f != grace })
	switch policy {
	case metav1.DeletePropagationForeground:
		w.foreground[uid] = true
		o.Finalizers = append(o.Finalizers, metav1.FinalizerDeleteDependents)
	case metav1.DeletePropagationOrphan:
		o.Finalizers = append(o.Finalizers, metav1.FinalizerOrphanDependents)
	}
	o.Deleting = true
	w.log = append(w.log, fmt.Sprintf("%s is deleted, %s", uid, policy))
	w.write(&o)
}

// interrupt is what a watch does that is lost and found again: of each object only the last state is seen.
func (w *world) interrupt() {
	for uid, changes := range w.late {
		w.late[uid] = changes[len(changes)-1:]
	}
}

// restart is another process of the collector: it knows what there is, and nothing of what was to be done.
func (w *world) restart() {
	w.graph, w.queue, w.late = newGraph(), map[types.UID]bool{}, map[types.UID][]*Object{}
	for uid, o := range w.server {
		w.late[uid] = []*Object{o}
	}
	for len(w.late) > 0 { // A collector acts on nothing before it has seen everything once.
		w.see()
	}
}

// see lets the graph learn of one change.
func (w *world) see() {
	uid := w.any(maps.Keys(w.late))
	o := w.late[uid][0]
	if w.late[uid] = w.late[uid][1:]; len(w.late[uid]) == 0 {
		delete(w.late, uid)
	}
	affected := w.graph.remove
	if o.ResourceVersion != "" {
		affected = func(types.UID) []types.UID { return w.graph.observe(o) }
	}
	for _, again := range affected(uid) {
		w.queue[again] = true
	}
}

// pass is one pass of the collector over one object.
func (w *world) pass(uid types.UID) {
	delete(w.queue, uid)
	in, known := w.graph.input(uid)
	if !known {
		return
	}
	plan := Decide(in)
	if len(plan.Lookup) > 0 {
		for _, r := range plan.Lookup {
			in.Owners[r.UID] = Absent
			if owner := w.server[r.UID]; owner != nil {
				in.Owners[r.UID] = stateOf(owner.isForeground())
			}
		}
		plan = Decide(in)
	}
	for _, again := range plan.Revisit {
		w.queue[again] = true
	}
	for _, d := range plan.Release {
		w.update(d, uid, func(o *Object) { o.Owners = without(o.Owners, uid) })
	}
	switch {
	case plan.Delete != nil:
		if w.isCurrent(in.Object, uid) {
			w.checkGone(in.Object, in.Object.Owners)
			w.delete(uid, *plan.Delete)
		}
	case plan.KeepOwners != nil:
		w.update(in.Object, uid, func(o *Object) {
			o.Owners = plan.KeepOwners
			w.checkGone(o, slices.DeleteFunc(slices.Clone(in.Object.Owners), func(r metav1.OwnerReference) bool {
				return slices.ContainsFunc(o.Owners, func(kept metav1.OwnerReference) bool { return kept.UID == r.UID })
			}))
		})
	case plan.DropFinalizer != "":
		w.update(in.Object, uid, func(o *Object) {
			w.check(o, plan.DropFinalizer)
			o.Finalizers = slices.DeleteFunc(slices.Clone(o.Finalizers),
				func(f string) bool { return f == plan.DropFinalizer })
		})
	}
}

// isCurrent is the precondition of every write: what does not hold ends in a conflict, and in another pass.
func (w *world) isCurrent(seen *Object, again types.UID) bool {
	o := w.server[seen.UID]
	if o != nil && o.ResourceVersion != seen.ResourceVersion {
		w.queue[again] = true
	}
	return o != nil && o.ResourceVersion == seen.ResourceVersion
}

func (w *world) update(seen *Object, again types.UID, change func(*Object)) {
	if w.isCurrent(seen, again) {
		o := *seen
		change(&o)
		w.write(&o)
	}
}

// checkGone fails when an object loses an owner, or its life, though the owner is there and does not take it along.
func (w *world) checkGone(o *Object, owners []metav1.OwnerReference) {
	for _, r := range owners {
		if w.server[r.UID] != nil && !w.foreground[r.UID] {
			w.fail("%s loses its owner %s, which lives", o.UID, r.UID)
		}
	}
}

// check fails when an object's foreground deletion ends before the dependents are gone that it has to wait for.
func (w *world) check(o *Object, finalizer string) {
	for _, d := range w.server {
		if finalizer == metav1.FinalizerDeleteDependents && holdsBack(d, map[types.UID]bool{o.UID: true}) &&
			!w.blocks[o.UID][d.UID] {
			w.fail("%s does not wait for %s", o.UID, d.UID)
		}
	}
}

func (w *world) any(uids func(func(types.UID) bool)) types.UID {
	sorted := slices.Sorted(uids)
	return sorted[w.random.IntN(len(sorted))]
}

func (w *world) fail(format string, args ...any) {
	w.t.Fatalf("%s\n%s", fmt.Sprintf(format, args...), strings.Join(w.log, "\n"))
}

// ownerLives reports whether one of the owners that the object names is there.
func (w *world) ownerLives(o *Object) bool {
	return slices.ContainsFunc(o.Owners, func(r metav1.OwnerReference) bool { return w.server[r.UID] != nil })
}

// ask is a user's request to delete an object, if it is there.
func (w *world) ask(uid types.UID) {
	policies := []metav1.DeletionPropagation{
		metav1.DeletePropagationBackground, metav1.DeletePropagationForeground,
		metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan,
	}
	if o := w.server[uid]; o != nil && !o.Deleting {
		w.delete(uid, policies[w.random.IntN(len(policies))])
	}
}

// settle lets everything happen, in any order, until nothing is left to happen.
func (w *world) settle() {
	for steps := 0; w.step(); steps++ {
		if steps == 10_000 {
			w.fail("it does not come to rest")
		}
	}
}

// step lets one thing happen at most, and says whether anything is left to happen.
func (w *world) step() bool {
	ending := slices.DeleteFunc(slices.Collect(maps.Keys(w.server)), func(uid types.UID) bool {
		return !w.server[uid].Deleting || !w.server[uid].has(grace)
	})
	switch choice := w.random.IntN(3); {
	case len(w.late)+len(w.queue)+len(ending) == 0:
		return false
	case choice == 0 && len(w.late) > 0:
		w.see()
	case choice == 1 && len(w.queue) > 0:
		w.pass(w.any(maps.Keys(w.queue)))
	case choice == 2 && len(ending) > 0:
		o := *w.server[w.any(slices.Values(ending))]
		o.Finalizers = slices.DeleteFunc(slices.Clone(o.Finalizers), func(f string) bool { return f == grace })
		w.write(&o)
	}
	return true
}
