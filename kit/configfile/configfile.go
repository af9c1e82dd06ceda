// Package configfile reads configuration files, and parts of them, as kinds of the API.
package configfile

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// Kind is what a file, or a part of one, has to be.
type Kind struct {
	APIVersion, Name string
	// Part is the path of a part in its file; empty for a whole file. A part need not say what it is.
	Part string
}

// Decode reads YAML or JSON into the kind's type. Names of fields are case-sensitive; a field that the kind does not
// have and one that stands twice are errors, which begin with the path and stand on a line each.
func (k Kind) Decode(data []byte, into runtime.Object) error {
	text, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return fmt.Errorf("%sis no YAML: %w", k.subject(), err)
	}
	mistakes, err := kjson.UnmarshalStrict(text, into)
	if err != nil {
		return fmt.Errorf("%sis no %s: %w", k.subject(), k.Name, err)
	}
	if err := k.check(into); err != nil {
		return err
	}
	for i, mistake := range mistakes {
		var at kjson.FieldError
		if errors.As(mistake, &at) {
			mistakes[i] = fmt.Errorf("%s: %s has no such field, or it stands twice", k.path(at.FieldPath()), k.Name)
		}
	}
	return errors.Join(mistakes...)
}

// check compares what the text says of itself.
func (k Kind) check(read runtime.Object) error {
	said, isTyped := read.GetObjectKind().(*metav1.TypeMeta)
	if !isTyped {
		return fmt.Errorf("a %T does not say its kind", read)
	}
	for _, field := range []struct{ name, said, want string }{
		{"apiVersion", said.APIVersion, k.APIVersion}, {"kind", said.Kind, k.Name},
	} {
		if field.said != field.want && (field.said != "" || k.Part == "") {
			return fmt.Errorf("%s: %q, it must be %q", k.path(field.name), field.said, field.want)
		}
	}
	return nil
}

func (k Kind) path(field string) string {
	if k.Part == "" {
		return field
	}
	return k.Part + "." + field
}

func (k Kind) subject() string {
	if k.Part == "" {
		return ""
	}
	return k.Part + ": "
}
