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

// shape is where in a type there are such lists. The shape of a type that holds itself does so too.
type shape struct{ parts []part }

type part struct {
	index  int
	name   string
	merged bool
	inner  *shape // nil when there is no such list below
}

// shapes keeps what was found in each type.
var shapes sync.Map

func shapeOf(t reflect.Type) *shape {
	if known, ok := shapes.Load(t); ok {
		return known.(*shape)
	}
	found := look(t, map[reflect.Type]*shape{})
	shapes.Store(t, found)
	return found
}

// look finds the shape of a type within those that are being looked at.
func look(t reflect.Type, within map[reflect.Type]*shape) *shape {
	if around, ok := within[t]; ok {
		return around
	}
	found := &shape{}
	within[t] = found
	defer delete(within, t)
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "-" {
			continue
		}
		at := part{index: i, name: name, merged: f.Type.Kind() == reflect.Slice &&
			strings.Contains(f.Tag.Get("patchStrategy"), "merge")}
		if inner := structOf(f.Type); inner != nil {
			_, circular := within[inner]
			if at.inner = look(inner, within); !circular && len(at.inner.parts) == 0 {
				at.inner = nil
			}
		}
		if at.merged || at.inner != nil {
			found.parts = append(found.parts, at)
		}
	}
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
func tooLong(value reflect.Value, s *shape, path *field.Path) field.ErrorList {
	if s == nil {
		return nil
	}
	var errs field.ErrorList
	for _, at := range s.parts {
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
