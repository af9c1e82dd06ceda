package credentialprovider

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var durationType = reflect.TypeFor[metav1.Duration]()

// checkShape reports each value of a decoded file that cannot be a field of the type, by its path. Fields that the
// type lacks are left to the strict decoder.
func checkShape(wrong *problems, path string, value any, of reflect.Type) {
	if value == nil {
		return
	}
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	switch {
	case of == durationType:
		text, ok := value.(string)
		if _, err := time.ParseDuration(text); !ok || err != nil {
			wrong.add(path, "%v must be a duration, like 10m or 12h", value)
		}
	case of.Kind() == reflect.Struct:
		checkFields(wrong, path, value, of)
	case of.Kind() == reflect.Slice:
		items, ok := value.([]any)
		if !ok {
			wrong.add(path, "must be a list")
		}
		for i, item := range items {
			checkShape(wrong, fmt.Sprintf("%s[%d]", path, i), item, of.Elem())
		}
	case of.Kind() == reflect.Bool:
		if _, ok := value.(bool); !ok {
			wrong.add(path, "%v must be true or false", value)
		}
	default:
		if _, ok := value.(string); !ok {
			wrong.add(path, "must be a text; put it in quotes if it looks like something else")
		}
	}
}

func checkFields(wrong *problems, path string, value any, of reflect.Type) {
	fields, ok := value.(map[string]any)
	if !ok {
		wrong.add(cmp.Or(path, "the file"), "must have fields")
		return
	}
	for i := range of.NumField() {
		field := of.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" { // apiVersion and kind, which the decoder checks
			continue
		}
		checkShape(wrong, strings.TrimPrefix(path+"."+name, "."), fields[name], field.Type)
	}
}
