package resource

import (
	"fmt"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	nameField      = "metadata.name"
	namespaceField = "metadata.namespace"
)

// Field is one field selector of a resource.
type Field[O Object] struct {
	// Label is what the client writes, for example "spec.nodeName".
	Label string
	// Value is the field's value in an object.
	Value func(O) string
	// Indexed makes lists and watches that ask for one value of the field cost
	// only the objects that have it. At most one field of a resource is indexed.
	Indexed bool
}

// convertFieldLabel accepts the resource's own field selectors beside name and namespace.
func (r Resource[O]) convertFieldLabel(label, value string) (string, string, error) {
	if label == nameField || label == namespaceField {
		return label, value, nil
	}
	for _, f := range r.Fields {
		if f.Label == label {
			return label, value, nil
		}
	}
	return "", "", fmt.Errorf("field label not supported: %s", label)
}

// Attributes are what selectors see of an object.
func (r Resource[O]) Attributes(obj runtime.Object) (labels.Set, fields.Set, error) {
	o, ok := obj.(O)
	if !ok {
		return nil, nil, fmt.Errorf("reading the attributes of a %T: not of the resource %s", obj, r.GroupResource())
	}
	set := fields.Set{nameField: o.GetName()}
	if !r.ClusterScoped {
		set[namespaceField] = o.GetNamespace()
	}
	for _, f := range r.Fields {
		// A field that is not there is empty to selectors, and the watch cache keeps a set of each version.
		if value := f.Value(o); value != "" {
			set[f.Label] = value
		}
	}
	return o.GetLabels(), set, nil
}
