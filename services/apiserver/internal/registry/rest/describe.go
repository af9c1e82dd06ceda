package rest

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericrest "k8s.io/apiserver/pkg/registry/rest"
)

// Description is an Entry for those who treat all types alike.
type Description struct {
	schema.GroupResource
	Singular      string
	ClusterScoped bool
	New           func() runtime.Object
	// Object are the rules for writes of the object, nil: it is only read; Status those of /status, nil: there is none.
	Object genericrest.RESTCreateUpdateStrategy
	Status genericrest.RESTUpdateStrategy
	Table  genericrest.TableConvertor
}

// Describe returns the resource without its type.
func (r Served[O]) Describe(scheme *runtime.Scheme) Description {
	d := Description{
		GroupResource: r.GroupResource(), Singular: r.Singular, ClusterScoped: r.ClusterScoped,
		New:    func() runtime.Object { return r.New() },
		Object: &strategy[O]{r.ObjectWrites(), r.scope(scheme)},
		Table:  newTableConvertor(r.Columns),
	}
	if r.Status != nil {
		d.Status = &strategy[O]{r.StatusWrites(), r.scope(scheme)}
	}
	return d
}
