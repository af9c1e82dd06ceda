package listbounds

import (
	"reflect"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// longest is how many elements a list may have that patches merge element by element. Merging takes time in the square
// of it, for the patch as for what is stored.
const longest = 1000

// longestOf is how many elements a list of the type may have at most, where it is fewer. What a Pod says of other Pods
// the scheduler counts for every domain and heeds for each of these.
var longestOf = map[reflect.Type]int{
	reflect.TypeFor[corev1.PodAffinityTerm]():          20,
	reflect.TypeFor[corev1.WeightedPodAffinityTerm]():  20,
	reflect.TypeFor[corev1.TopologySpreadConstraint](): 20,
}

// shape is where in a type there are such lists. The shape of a type that holds itself does so too.
type shape struct{ parts []part }

type part struct {
	index   int
	name    string
	longest int    // 0 when it is no such list
	inner   *shape // nil when there is no such list below
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
		at := part{index: i, name: name, longest: longestIn(f)}
		if inner := structOf(f.Type); inner != nil {
			_, circular := within[inner]
			if at.inner = look(inner, within); !circular && len(at.inner.parts) == 0 {
				at.inner = nil
			}
		}
		if at.longest > 0 || at.inner != nil {
			found.parts = append(found.parts, at)
		}
	}
	return found
}

// longestIn is how many elements the field may list; 0 when that is not bounded here.
func longestIn(f reflect.StructField) int {
	if f.Type.Kind() != reflect.Slice {
		return 0
	}
	if n, few := longestOf[f.Type.Elem()]; few {
		return n
	}
	if strings.Contains(f.Tag.Get("patchStrategy"), "merge") {
		return longest
	}
	return 0
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
			if at.longest > 0 && inner.Len() > at.longest {
				errs = append(errs, field.TooMany(path, inner.Len(), at.longest))
				continue
			}
			for i := range inner.Len() {
				errs = append(errs, tooLong(reflect.Indirect(inner.Index(i)), at.inner, path.Index(i))...)
			}
		}
	}
	return errs
}

// grown leaves out of what is too long what was so before, and has not become longer: what was stored before there was
// the bound can still be changed otherwise.
func grown(now, before field.ErrorList) field.ErrorList {
	return slices.DeleteFunc(now, func(e *field.Error) bool {
		return slices.ContainsFunc(before, func(b *field.Error) bool {
			return b.Field == e.Field && e.BadValue.(int) <= b.BadValue.(int)
		})
	})
}
