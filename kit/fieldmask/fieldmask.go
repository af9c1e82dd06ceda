// Package fieldmask drops what a daemon does not read of the objects that it watches from the bytes that come, so that
// nobody decodes it: of any object its managed fields, of a kind with a rule all that the rule does not name.
//
//	fieldmask.go  rules, and what they are in field numbers
//	decide.go     one watch event with and without them (pure)
//	transport.go  the stream of events of a watch
package fieldmask

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Rule names what is decoded of a kind.
type Rule struct {
	// Object is an example of the kind, which its TypeMeta names where the scheme does not.
	Object runtime.Object
	// Only names, by the path of a message such as "spec" or "spec.containers", the fields of it that are decoded. A
	// message that is not named is decoded whole.
	Only map[string][]string
}

// Mask is what some rules say. The zero value drops managed fields only.
type Mask struct {
	messages map[kind]*message
}

// kind is how objects name theirs on the wire.
type kind struct{ apiVersion, kind string }

// message says which fields of a protobuf message are kept.
type message struct {
	// only holds the fields that are kept; nil keeps all but those in drop.
	only, drop map[protowire.Number]bool
	// fields are messages that are not kept whole.
	fields map[protowire.Number]*message
}

// plain is what holds for a kind without a rule. Metadata is the first field of all kinds, and managedFields of it has
// this number.
var plain = &message{fields: map[protowire.Number]*message{1: unmanaged()}}

func unmanaged() *message {
	const managedFields = 17
	return &message{drop: map[protowire.Number]bool{managedFields: true}, fields: map[protowire.Number]*message{}}
}

// New returns what the rules say about kinds of the scheme.
func New(scheme *runtime.Scheme, rules ...Rule) (*Mask, error) {
	mask := &Mask{messages: map[kind]*message{}}
	for _, rule := range rules {
		kinds := []schema.GroupVersionKind{rule.Object.GetObjectKind().GroupVersionKind()}
		if kinds[0].Empty() {
			var err error
			if kinds, _, err = scheme.ObjectKinds(rule.Object); err != nil {
				return nil, fmt.Errorf("masking fields: %w", err)
			}
		}
		top := &message{fields: map[protowire.Number]*message{1: unmanaged()}}
		for _, path := range slices.Sorted(maps.Keys(rule.Only)) {
			if err := top.keepOnly(reflect.TypeOf(rule.Object).Elem(), path, rule.Only[path]); err != nil {
				return nil, fmt.Errorf("masking fields of kind %s: %w", kinds[0].Kind, err)
			}
		}
		for _, k := range kinds {
			mask.messages[kind{k.GroupVersion().String(), k.Kind}] = top
		}
	}
	return mask, nil
}

// keepOnly narrows the message at a path below this one.
func (m *message) keepOnly(of reflect.Type, path string, names []string) error {
	for name := range strings.SplitSeq(path, ".") {
		number, field, err := find(of, name)
		if err != nil {
			return err
		}
		if m.fields[number] == nil {
			m.fields[number] = &message{fields: map[protowire.Number]*message{}}
		}
		m, of = m.fields[number], field
	}
	m.only = map[protowire.Number]bool{}
	for _, name := range names {
		number, _, err := find(of, name)
		if err != nil {
			return err
		}
		m.only[number] = !m.drop[number]
	}
	return nil
}

// find returns a field of a message by its name in protobuf, and the message that it holds one or more of.
func find(of reflect.Type, name string) (protowire.Number, reflect.Type, error) {
	if of.Kind() != reflect.Struct {
		return 0, nil, fmt.Errorf("%s has no field %q, for it is no message", of, name)
	}
	for _, field := range reflect.VisibleFields(of) {
		parts := strings.Split(field.Tag.Get("protobuf"), ",")
		if !slices.Contains(parts, "name="+name) {
			continue
		}
		number, err := strconv.ParseInt(parts[1], 10, 32)
		if err != nil {
			return 0, nil, fmt.Errorf("field %q of %s: %w", name, of, err)
		}
		holds := field.Type
		for holds.Kind() == reflect.Pointer || holds.Kind() == reflect.Slice {
			holds = holds.Elem()
		}
		return protowire.Number(number), holds, nil
	}
	return 0, nil, fmt.Errorf("%s has no field %q", of, name)
}
