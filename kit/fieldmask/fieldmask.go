// Package fieldmask drops the fields that a daemon does not read from the encoded objects that it watches, before they
// are decoded: the managed fields of any object, and of a kind with a rule all that the rule does not name.
//
//	fieldmask.go  rules, and what they are in field numbers
//	decide.go     one watch event with and without them (pure)
//	transport.go  the stream of events of a watch
//	share.go      objects that share the memory of what they have alike, as they are decoded
//	pool.go       the same, of what trimming makes of them
//	informers.go  informers of such objects
package fieldmask

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/fields"
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
	// Shared names in the same way fields that many objects of the kind have alike, such as those that come from one
	// template: Informers decodes them once for all that agree on all of them. An object of its own in such a field
	// costs more than it would without.
	Shared map[string][]string
	// Resource is the kind's plural; only what is shared needs it.
	Resource string
	// Selector says which objects Informers watch; nil for all. The list that an informer is made with must be of the
	// same.
	Selector fields.Selector
}

// Mask is what some rules say. The zero value drops managed fields only.
type Mask struct {
	messages map[kind]*message
	scheme   *runtime.Scheme
	shared   []*sharing
}

// kind is how objects name theirs on the wire.
type kind struct{ apiVersion, kind string }

// message says which fields of a protobuf message are kept.
type message struct {
	// only holds the fields that are kept; nil keeps all but those in drop.
	only, drop map[protowire.Number]bool
	// fields are messages that are not kept whole.
	fields map[protowire.Number]*message
	// shared are the fields that many objects have alike; divided says that there are some here or further inside.
	shared  map[protowire.Number]bool
	divided bool
	// sharing is that of a whole object; nil if it shares nothing.
	sharing *sharing
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
	mask := &Mask{messages: map[kind]*message{}, scheme: scheme}
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
		if err := mask.share(top, rule, kinds[0]); err != nil {
			return nil, fmt.Errorf("sharing fields of kind %s: %w", kinds[0].Kind, err)
		}
		for _, k := range kinds {
			mask.messages[kind{k.GroupVersion().String(), k.Kind}] = top
		}
	}
	return mask, nil
}

// inside returns the message in a field of this one.
func (m *message) inside(number protowire.Number) *message {
	if m.fields[number] == nil {
		m.fields[number] = &message{fields: map[protowire.Number]*message{}}
	}
	return m.fields[number]
}

// keepOnly narrows the message at a path below this one.
func (m *message) keepOnly(of reflect.Type, path string, names []string) error {
	for name := range strings.SplitSeq(path, ".") {
		number, field, err := find(of, name)
		if err != nil {
			return err
		}
		m, of = m.inside(number), messageOf(field)
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

// messageOf returns the message that a field of the type holds one or more of.
func messageOf(field reflect.Type) reflect.Type {
	for field.Kind() == reflect.Pointer || field.Kind() == reflect.Slice {
		field = field.Elem()
	}
	return field
}

// find returns a field of a message by its name in protobuf, and its type.
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
		return protowire.Number(number), field.Type, nil
	}
	return 0, nil, fmt.Errorf("%s has no field %q", of, name)
}
