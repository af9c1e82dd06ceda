// Package carriedfields spares writes a check of their managed fields that cannot fail.
//
// Behind admission the library decodes all managed fields of an object again, in case a plugin has damaged them. They
// come from the library itself a moment before, and a plugin that has left them as they were cannot have damaged
// anything. So the chain takes them out of the object at its end, and the code that stores the object puts them back.
// Fields that no carrier offers to put back, and those that a plugin has changed, stay in the object and are checked.
package carriedfields

import (
	"context"
	"net/http"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
)

// carrier holds the managed fields of one object between admission and the store. A request has one for what it
// creates, and one for each try of an update.
type carrier struct {
	// old is the stored object that is updated; nil for a create.
	old    runtime.Object
	fields []metav1.ManagedFieldsEntry
}

// taken is what stands in an object whose managed fields are carried. It is not nil: where an object is too large, the
// library empties its managed fields behind admission, and they are to stay empty.
var taken = []metav1.ManagedFieldsEntry{}

type key struct{}

// ForCreates offers to put back the managed fields of what a request to next creates: package rest does that in all of
// its storages.
func ForCreates(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			r = r.WithContext(Offer(r.Context(), nil))
		}
		next.ServeHTTP(w, r)
	})
}

// Offer returns a context in which the managed fields of one object are carried: of what is to replace old, or of what
// is created where old is nil. Who calls it puts them back.
func Offer(ctx context.Context, old runtime.Object) context.Context {
	return context.WithValue(ctx, key{}, &carrier{old: old})
}

// PutBack gives the object the managed fields that were taken out of it, if they were.
func PutBack(ctx context.Context, obj runtime.Object) {
	c, offered := ctx.Value(key{}).(*carrier)
	if !offered || c.fields == nil {
		return
	}
	if object, err := meta.Accessor(obj); err == nil && isTaken(object) {
		object.SetManagedFields(c.fields)
		c.fields = nil
	}
}

func isTaken(object metav1.Object) bool {
	fields := object.GetManagedFields()
	return fields != nil && len(fields) == 0
}

// takes reports whether the carrier is for the object that is admitted. A subresource may be an object of its own, such
// as a Scale, whose managed fields others read before anything is stored.
func (c *carrier) takes(a admission.Attributes) bool {
	switch a.GetOperation() {
	case admission.Create:
		return c.old == nil && a.GetSubresource() == ""
	case admission.Update:
		return c.old != nil && c.old == a.GetOldObject()
	default:
		return false
	}
}

// Over returns the chain with the managed fields taken out of what it has admitted.
func Over(chain admission.Interface) admission.Interface { return &carrying{chain} }

type carrying struct{ chain admission.Interface }

var (
	_ admission.MutationInterface   = &carrying{}
	_ admission.ValidationInterface = &carrying{}
)

// Handles implements admission.Interface.
func (c *carrying) Handles(operation admission.Operation) bool { return c.chain.Handles(operation) }

// Admit implements admission.MutationInterface.
func (c *carrying) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	mutating, ok := c.chain.(admission.MutationInterface)
	if !ok {
		return nil
	}
	carrier, offered := ctx.Value(key{}).(*carrier)
	object, err := meta.Accessor(a.GetObject())
	if !offered || err != nil || !carrier.takes(a) {
		return mutating.Admit(ctx, a, o)
	}
	before := slices.Clone(object.GetManagedFields())
	if err := mutating.Admit(ctx, a, o); err != nil {
		return err
	}
	if after := object.GetManagedFields(); len(after) > 0 && slices.Equal(before, after) {
		carrier.fields = after
		object.SetManagedFields(taken)
	}
	return nil
}

// Validate implements admission.ValidationInterface.
func (c *carrying) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if validating, ok := c.chain.(admission.ValidationInterface); ok {
		return validating.Validate(ctx, a, o)
	}
	return nil
}
