package owners

import (
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/explain"
	"keelson.dev/kit/localvolume"
)

// shown is how many objects a sentence names before it only counts them.
const shown = 5

// account explains what keeps an object, what its deletion waits for, and what a pass decides about it. Doubts says,
// by UID, why it is not known whether an owner is there.
func account(in Input, plan Plan, doubts map[types.UID]string) explain.Account {
	a := explain.Account{Whole: true}
	if in.Object.Deleting {
		goes(&a, in, plan)
	} else {
		stays(&a, in, plan, doubts)
	}
	return a
}

// stays explains an object that is not being deleted.
func stays(a *explain.Account, in Input, plan Plan, doubts map[types.UID]string) {
	byState := map[OwnerState][]metav1.OwnerReference{}
	for _, ref := range in.Object.Owners {
		state := in.Owners[ref.UID]
		byState[state] = append(byState[state], ref)
	}
	switch {
	case plan.Delete != nil:
		a.Do(1, "deletes it, as none of its owners stays: %s", lost(byState))
	case plan.KeepOwners != nil:
		a.Do(1, "has it forget owners that do not stay: %s; it stays for %s", lost(byState), owners(byState[Present]))
	case len(in.Object.Owners) == 0:
		a.Settled = "it has no owner and stays until somebody deletes it"
	default:
		a.Settled = "it stays as long as one of its owners does: " + owners(in.Object.Owners)
	}
	for _, ref := range plan.Lookup {
		a.Wait(explain.Wait{Reason: "OwnerUnknown", For: fmt.Sprintf("word of its owner %s: %s", owner(ref),
			doubts[ref.UID]), Ends: "the apiserver says whether that is there; the object stays until then"})
	}
	for _, ref := range byState[Present] {
		if why := doubts[ref.UID]; why != "" {
			a.Wait(explain.Wait{Reason: "OwnerMisplaced", For: fmt.Sprintf("somebody to take off its reference to the "+
				"owner %s, which is never found: %s", owner(ref), why), Ends: "that is done, or the object is deleted"})
		}
	}
	if len(in.Dependents) > 0 {
		a.Settled += "; its dependents go after it unless other owners keep them: " + objects(in.Dependents, nothing)
	}
}

// goes explains what the deletion of an object waits for.
func goes(a *explain.Account, in Input, plan Plan) {
	o := in.Object
	switch {
	case len(plan.Release) > 0:
		a.Do(1, "takes it off the owner references of its dependents, so that they stay: %s",
			objects(plan.Release, nothing))
	case plan.DropFinalizer == metav1.FinalizerOrphanDependents:
		a.Do(1, "takes off the finalizer %s: nothing names it as an owner any more", plan.DropFinalizer)
	case plan.DropFinalizer != "":
		a.Do(1, "takes off the finalizer %s: no dependent holds it back", plan.DropFinalizer)
	case o.isForeground():
		a.Wait(dependentsRemain(in))
	}
	for _, finalizer := range o.Finalizers {
		if finalizer != metav1.FinalizerOrphanDependents && finalizer != metav1.FinalizerDeleteDependents {
			a.Wait(finalizerRemains(finalizer))
		}
	}
	if len(o.Finalizers) == 0 {
		ends(a, o)
	}
}

// ends explains a deleted object without finalizers. The apiserver removes it at once, unless its kind ends in a
// special way.
func ends(a *explain.Account, o *Object) {
	switch (schema.GroupKind{Group: o.Resource.Group, Kind: o.Kind}) {
	case schema.GroupKind{Kind: "Pod"}:
		a.Wait(explain.Wait{Reason: "Terminating", For: "its node to end it",
			Ends: "its containers have stopped, which the nodeagent tells the apiserver"})
	case schema.GroupKind{Kind: "Namespace"}:
		a.Wait(explain.Wait{Reason: "Terminating", For: "the collector namespace to empty it",
			Ends: "nothing is left in it"})
	default:
		a.Settled = "no finalizer keeps it, so it is about to be gone"
	}
}

// dependentsRemain is the wait of an object for its dependents to go first.
func dependentsRemain(in Input) explain.Wait {
	holds := in.holder()
	var held []*Object
	seen := map[types.UID]bool{}
	for _, dependents := range [][]*Object{in.Dependents, in.Beside} {
		for _, d := range dependents {
			if holds(d) && !seen[d.UID] {
				held, seen[d.UID] = append(held, d), true
			}
		}
	}
	circle := ""
	if n := len(in.Circle); n > 1 {
		circle = fmt.Sprintf("; it is one of %d owners that wait for each other in a circle, and waits for what holds "+
			"back any of them", n)
	}
	return explain.Wait{Reason: "DependentsRemain",
		For: fmt.Sprintf("%s to be gone whose owner references say blockOwnerDeletion: %s%s",
			explain.Count(len(held), "dependent"), objects(held, stage), circle),
		Ends: "they are gone: this collector deletes those that are not deleted yet, and who is responsible for a " +
			"finalizer takes it off"}
}

// stage says how far the deletion of a dependent is.
func stage(o *Object) string {
	switch {
	case !o.Deleting:
		return " (not deleted yet)"
	case len(o.Finalizers) == 0:
		return " (being deleted)"
	}
	return " (being deleted, kept by " + strings.Join(o.Finalizers, ", ") + ")"
}

// nothing is what is said of objects that are only named.
func nothing(*Object) string { return "" }

// remover is who takes off a finalizer, and once what is true.
type remover struct{ who, once string }

// removers are those of the finalizers whose work is known.
var removers = map[string]remover{
	"kubernetes.io/pvc-protection": {"podgc's collector pvcprotection", "no Pod that may run uses the claim"},
	"kubernetes.io/pv-protection":  {"podgc's collector pvprotection", "no claim has the volume"},
	"kubernetes.io/vac-protection": {"podgc's collector vacprotection", "no claim and no volume names the class"},
	"scheduling.k8s.io/podgroup-protection": {
		"podgc's collector podgroupprotection",
		"the Pods of the group have ended",
	},
	localvolume.FolderFinalizer: {"the nodeagent of its node", "the folder is removed"},
	batchv1.JobTrackingFinalizer: {"workload-controllers' controller job",
		"the end of the Pod is counted in its Job, or the Job is gone"},
}

// finalizerRemains is the wait of an object for who takes off a finalizer.
func finalizerRemains(finalizer string) explain.Wait {
	if known, ok := removers[finalizer]; ok {
		return explain.Wait{Reason: "FinalizerRemains", For: fmt.Sprintf("%s to take off the finalizer %s", known.who,
			finalizer), Ends: known.once}
	}
	return explain.Wait{Reason: "FinalizerRemains", For: fmt.Sprintf("whoever is responsible for the finalizer %s to "+
		"take it off", finalizer), Ends: "they do; where nobody does any more, take it off by hand with kubectl edit"}
}

// lost explains why owners do not stay.
func lost(byState map[OwnerState][]metav1.OwnerReference) string {
	var said []string
	for _, ref := range byState[Absent] {
		said = append(said, owner(ref)+" is gone")
	}
	for _, ref := range byState[Waiting] {
		said = append(said, owner(ref)+" is being deleted and waits for its dependents")
	}
	return strings.Join(said, ", ")
}

func owners(refs []metav1.OwnerReference) string {
	named := make([]string, 0, len(refs))
	for _, ref := range refs {
		named = append(named, owner(ref))
	}
	return strings.Join(named, ", ")
}

func owner(ref metav1.OwnerReference) string { return ref.Kind + " " + ref.Name }

// objects names the first of them, each with what is said of it, and how many more there are.
func objects(all []*Object, say func(*Object) string) string {
	named := make([]string, 0, shown)
	for _, o := range all[:min(len(all), shown)] {
		named = append(named, o.Kind+" "+o.Name+say(o))
	}
	text := strings.Join(named, ", ")
	if more := len(all) - shown; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
