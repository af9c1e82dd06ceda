package resource

import (
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Part is one of the two parts of an object that are written apart: its spec or its status.
type Part[O Object] struct {
	empty func(obj O)
	keep  func(obj, old O)
	same  func(obj, old O) bool
}

// PartOf is the part that get finds in an object.
func PartOf[O Object, V any](get func(O) *V) *Part[O] {
	return &Part[O]{
		empty: func(obj O) {
			var none V
			*get(obj) = none
		},
		keep: func(obj, old O) { *get(obj) = *get(old) },
		// By value: of what can be addressed the comparison notes where it has been, which allocates.
		same: func(obj, old O) bool { return equality.Semantic.DeepEqual(*get(obj), *get(old)) },
	}
}

// KeepMetadata is for kinds whose /status leaves all metadata alone, which get finds in an object: it takes it from
// old. Which manager wrote what is no part of that.
func KeepMetadata[O Object](get func(O) *metav1.ObjectMeta) func(obj, old O) {
	return func(obj, old O) {
		managers := obj.GetManagedFields()
		*get(obj) = *get(old)
		obj.SetManagedFields(managers)
	}
}

// ObjectWrites are the complete rules for writes of the object: the kind's own and what follows from Spec and Status.
func (r Resource[O]) ObjectWrites() Strategy[O] {
	own, s := r.Strategy, r.Strategy
	s.PrepareForCreate = func(obj O) {
		if r.Status != nil && !r.StatusOnCreate {
			r.Status.empty(obj)
		}
		if r.counted() {
			obj.SetGeneration(1)
		}
		if own.PrepareForCreate != nil {
			own.PrepareForCreate(obj)
		}
	}
	s.PrepareForUpdate, s.PrepareAt = r.preparesUpdate()
	if own.ValidateUpdate == nil && own.Validate != nil {
		s.ValidateUpdate = func(obj, _ O) field.ErrorList { return own.Validate(obj) }
	}
	if own.ResetFields == nil && r.Status != nil {
		s.ResetFields = []string{"status"}
	}
	return s
}

// preparesUpdate counts the changes of the spec after all that is prepared.
func (r Resource[O]) preparesUpdate() (forUpdate func(obj, old O), at func(obj, old O, now metav1.Time)) {
	own := r.Strategy
	forUpdate = func(obj, old O) {
		if r.Status != nil {
			r.Status.keep(obj, old)
		}
		if own.PrepareForUpdate != nil {
			own.PrepareForUpdate(obj, old)
		}
		if r.counted() && own.PrepareAt == nil {
			RaiseGeneration(obj, old, !r.Spec.same(obj, old))
		}
	}
	if !r.counted() || own.PrepareAt == nil {
		return forUpdate, own.PrepareAt
	}
	return forUpdate, func(obj, old O, now metav1.Time) {
		own.PrepareAt(obj, old, now)
		if !isNone(old) {
			RaiseGeneration(obj, old, !r.Spec.same(obj, old))
		}
	}
}

// counted reports whether metadata.generation counts the changes of the spec.
func (r Resource[O]) counted() bool { return r.Spec != nil && !r.NoGeneration }

// StatusWrites are the complete rules for writes of /status.
func (r Resource[O]) StatusWrites() Strategy[O] {
	own, s := r.StatusStrategy, r.StatusStrategy
	s.PrepareForUpdate = func(obj, old O) {
		if r.Spec != nil {
			r.Spec.keep(obj, old)
		}
		if own.PrepareForUpdate != nil {
			own.PrepareForUpdate(obj, old)
		}
	}
	if own.ResetFields == nil && r.Spec != nil {
		s.ResetFields = []string{"spec"}
	}
	return s
}

func isNone[O Object](obj O) bool {
	var none O
	return any(obj) == any(none)
}
