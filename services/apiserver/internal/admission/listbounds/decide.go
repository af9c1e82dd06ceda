package listbounds

import (
	"reflect"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// longest is how many elements a list may have that patches merge element by element. Merging takes time in the square
// of it, for the patch as for what is stored.
const longest = 1000

// shape is where in a type there are such lists.
type shape []part

type part struct {
	index  int
	name   string
	merged bool
	inner  shape
}

// shapes keeps what was found in each type.
var shapes sync.Map

func shapeOf(t reflect.Type) shape {
	if known, ok := shapes.Load(t); ok {
		return known.(shape)
	}
	var found shape
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "-" {
			continue
		}
		at := part{index: i, name: name, merged: f.Type.Kind() == reflect.Slice &&
			strings.Contains(f.Tag.Get("patchStrategy"), "merge")}
		if inner := structOf(f.Type); inner != nil {
			at.inner = shapeOf(inner)
		}
		if at.merged || len(at.inner) > 0 {
			found = append(found, at)
		}
	}
	shapes.Store(t, found)
	return found
}

// structOf is the struct that a field of the type holds, points to or lists; nil if there is none.
func structOf(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	return t
}

// tooLong lists what is too long in a value of the shape.
func tooLong(value reflect.Value, s shape, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, at := range s {
		inner, path := value.Field(at.index), path
		if at.name != "" {
			path = path.Child(at.name)
		}
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch inner.Kind() {
		case reflect.Struct:
			errs = append(errs, tooLong(inner, at.inner, path)...)
		case reflect.Slice:
			if at.merged && inner.Len() > longest {
				errs = append(errs, field.TooMany(path, inner.Len(), longest))
				continue
			}
			for i := range inner.Len() {
				errs = append(errs, tooLong(reflect.Indirect(inner.Index(i)), at.inner, path.Index(i))...)
			}
		}
	}
	return errs
}
