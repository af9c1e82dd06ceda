package events

import (
	corev1 "k8s.io/api/core/v1"
)

// most is how many Events go together. The apiserver takes 500 in a batch.
const most = 200

// write is one Event to be written: a new one, or again one that is there, which a patch counts up.
type write struct {
	event *corev1.Event
	again bool
}

// object is what an Event is about.
type object struct{ namespace, name, uid string }

func (w write) about() object {
	o := &w.event.InvolvedObject
	return object{o.Namespace, o.Name, string(o.UID)}
}

// round is what is written together: the new Events by one request, then the patches.
type round struct {
	creates, patches []write
	patched          map[object]bool
}

// add takes the write into the round. It returns false for one that must come later: a new Event about an object of
// which the round has a patch. An Event of the round that is counted up is written once, as it is in the end.
func (r *round) add(w write) bool {
	about := w.about()
	if !w.again {
		if r.patched[about] {
			return false
		}
		r.creates = append(r.creates, w)
		return true
	}
	if created := find(r.creates, w); created != nil {
		created.event = w.event
		return true
	}
	if earlier := find(r.patches, w); earlier != nil {
		*earlier = w
		return true
	}
	if r.patched == nil {
		r.patched = map[object]bool{}
	}
	r.patched[about] = true
	r.patches = append(r.patches, w)
	return true
}

// find returns the write of the same Event; nil if there is none.
func find(writes []write, w write) *write {
	for i := range writes {
		if e := writes[i].event; e.Name == w.event.Name && e.Namespace == w.event.Namespace {
			return &writes[i]
		}
	}
	return nil
}

func (r *round) empty() bool { return len(r.creates)+len(r.patches) == 0 }

func (r *round) full() bool { return len(r.creates)+len(r.patches) >= most }
