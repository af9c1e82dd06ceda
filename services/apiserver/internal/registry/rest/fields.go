package rest

import (
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/client-go/tools/cache"
)

// predicate selects by labels and fields. It names the indexed field, without which the watch cache looks at every
// object.
func (r Served[O]) predicate(label labels.Selector, field fields.Selector) storage.SelectionPredicate {
	p := storage.SelectionPredicate{Label: label, Field: field, GetAttrs: r.Attributes}
	for _, f := range r.Fields {
		if f.Indexed {
			p.IndexFields = append(p.IndexFields, f.Label)
		}
	}
	return p
}

// triggers lets an event reach only the watchers that asked for its value of the indexed field.
func (r Served[O]) triggers() storage.IndexerFuncs {
	for _, f := range r.Fields {
		if f.Indexed {
			return storage.IndexerFuncs{f.Label: func(obj runtime.Object) string { return f.Value(obj.(O)) }}
		}
	}
	return nil
}

func (r Served[O]) indexers() *cache.Indexers {
	for _, f := range r.Fields {
		if f.Indexed {
			return &cache.Indexers{storage.FieldIndex(f.Label): func(obj any) ([]string, error) {
				return []string{f.Value(obj.(O))}, nil
			}}
		}
	}
	return nil
}
