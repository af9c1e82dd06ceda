package bootstrap

import (
	"maps"
	"slices"
	"strconv"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// kept are the objects of one kind that flow control is to have.
type kept[O metav1.Object] struct {
	// mandatory are as they are, suggested are so until an operator takes them over.
	mandatory, suggested []O
	// replaced returns an object that is there with the spec of one that is kept.
	replaced func(there, by O) O
}

// upkeep is what to do about objects.
type upkeep[O metav1.Object] struct {
	create, update []O
	remove         []string
}

// decide compares the objects with the stored ones. It creates what is missing, and restores the spec of what has
// another, unless its annotation says that it is an operator's. An object that is not among them, but has their
// annotation, is of another version and is removed.
func (k kept[O]) decide(there []O) upkeep[O] {
	var do upkeep[O]
	left := map[string]O{}
	for _, o := range there {
		left[o.GetName()] = o
	}
	keep := func(standard O, always bool) {
		name := standard.GetName()
		o, found := left[name]
		delete(left, name)
		if !found {
			do.create = append(do.create, standard)
			return
		}
		if updated := k.updated(o, standard, always || updatesItself(o)); !equality.Semantic.DeepEqual(updated, o) {
			do.update = append(do.update, updated)
		}
	}
	for _, o := range k.suggested {
		keep(o, false)
	}
	for _, o := range k.mandatory {
		keep(o, true)
	}
	for _, name := range slices.Sorted(maps.Keys(left)) {
		if updates, said := autoUpdates(left[name]); said && updates {
			do.remove = append(do.remove, name)
		}
	}
	return do
}

// updated is what an object that is there should be.
func (k kept[O]) updated(there, standard O, updates bool) O {
	// Its own spec, for who takes nothing over.
	by := there
	if updates {
		by = standard
	}
	updated := k.replaced(there, by)
	if says, said := autoUpdates(there); !said || says != updates {
		annotations := maps.Clone(there.GetAnnotations())
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[flowcontrolv1.AutoUpdateAnnotationKey] = strconv.FormatBool(updates)
		updated.SetAnnotations(annotations)
	}
	return updated
}

// updatesItself reports whether an object follows what is suggested: as its annotation says, or without one as long as
// no user has changed it.
func updatesItself(o metav1.Object) bool {
	if says, said := autoUpdates(o); said {
		return says
	}
	return o.GetGeneration() == 1
}

// autoUpdates is what the annotation of an object says, if it says so.
func autoUpdates(o metav1.Object) (says, said bool) {
	says, err := strconv.ParseBool(o.GetAnnotations()[flowcontrolv1.AutoUpdateAnnotationKey])
	return says, err == nil
}
