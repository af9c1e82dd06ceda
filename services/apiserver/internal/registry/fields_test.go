package registry_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/discovery"

	"keelson.dev/services/apiserver/internal/servertest"
)

// In testdata/fields is a file for each Go package of the API, with a line for each field of its types: who acts on it,
// in words of words.txt. What refuses, drops or leaves alone says why.

const (
	fieldsFolder = "testdata/fields"
	refused      = "refused"
	dropped      = "dropped"
	nobody       = "nobody"
)

// classified is what a line says of a field.
type classified struct {
	actors []string
	reason string
}

// classification are the lines of all files, by package, type and field: "core.v1.PodSpec.nodeName".
func classification(t *testing.T) map[string]classified {
	t.Helper()
	words := map[string]bool{}
	for _, line := range linesOf(t, "words.txt") {
		word, _, _ := strings.Cut(line, "  ")
		words[word] = true
	}
	files, err := filepath.Glob(filepath.Join(fieldsFolder, "*.v*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no field is classified: %v", err)
	}
	all := map[string]classified{}
	for _, file := range files {
		for _, line := range linesOf(t, filepath.Base(file)) {
			name, text, _ := strings.Cut(line, "  ")
			name = strings.TrimSuffix(filepath.Base(file), "txt") + name
			actors, reason, _ := strings.Cut(text, ": ")
			c := classified{strings.Fields(actors), reason}
			if _, twice := all[name]; twice {
				t.Errorf("%s has two lines", name)
			}
			if problem := c.problem(words); problem != "" {
				t.Errorf("%s: %s", name, problem)
			}
			all[name] = c
		}
	}
	return all
}

// problem is what is wrong with a line.
func (c classified) problem(words map[string]bool) string {
	if len(c.actors) == 0 {
		return "nobody is named: use the word nobody, and say why"
	}
	for _, actor := range c.actors {
		if !words[actor] {
			return fmt.Sprintf("%q is no word of words.txt", actor)
		}
		if (actor == refused || actor == dropped || actor == nobody) && len(c.actors) > 1 {
			return fmt.Sprintf("%q stands beside others", actor)
		}
	}
	if (c.is(refused) || c.is(nobody)) && c.reason == "" {
		return "no reason is given"
	}
	return ""
}

func (c classified) is(actor string) bool { return slices.Contains(c.actors, actor) }

func linesOf(t *testing.T, file string) []string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(fieldsFolder, file))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(content), "\n"), "\n")
}

// An unclassified field is accepted although perhaps no daemon acts on it.
func TestEveryFieldIsClassified(t *testing.T) {
	known := classification(t)
	served := fieldNames{}
	for _, root := range servedTypes(t) {
		served.add(root)
	}
	// Of lists all are alike.
	served.add(reflect.TypeFor[metav1.ListMeta]())
	for _, name := range slices.Sorted(maps.Keys(served)) {
		if _, ok := known[name]; !ok {
			t.Errorf("%s: say in %s who acts on it", name, fieldsFolder)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if !served[name] {
			t.Errorf("%s is classified, but nothing that is served has such a field", name)
		}
	}
}

// servedTypes are the types of all kinds that a server offers, also of subresources, and of what requests are asked
// with.
func servedTypes(t *testing.T) []reflect.Type {
	t.Helper()
	s := newScheme(t)
	if err := apiextensionsv1.AddToScheme(s); err != nil { // its library serves it
		t.Fatal(err)
	}
	client, err := discovery.NewDiscoveryClientForConfig(servertest.Start(t).ConfigAs(servertest.Admin))
	if err != nil {
		t.Fatal(err)
	}
	_, lists, err := client.ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[schema.GroupKind]bool{}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for i := range list.APIResources {
			kinds[kindOf(&list.APIResources[i], version.Group)] = true
		}
	}
	var types []reflect.Type
	for kind, of := range s.AllKnownTypes() {
		asked := strings.HasSuffix(kind.Kind, "Options")
		if kind.Version != runtime.APIVersionInternal && (asked || kinds[kind.GroupKind()]) {
			types = append(types, of)
		}
	}
	if len(kinds) < 50 || len(types) < len(kinds) {
		t.Fatalf("%d kinds and %d types are served: the test sees too few", len(kinds), len(types))
	}
	return types
}

// kindOf is the kind of a resource, which a subresource may have from another group.
func kindOf(resource *metav1.APIResource, group string) schema.GroupKind {
	if resource.Version != "" {
		group = resource.Group
	}
	return schema.GroupKind{Group: group, Kind: resource.Kind}
}

// fieldNames are fields by package, type and name.
type fieldNames map[string]bool

// add adds the fields of a type and of the types that it is made of.
func (f fieldNames) add(t reflect.Type) {
	t = within(t)
	if t.Kind() != reflect.Struct || isValue(t) {
		return
	}
	for _, member := range members(t) {
		if name := nameOf(t, member); !member.Anonymous {
			if f[name] {
				return // the type is known
			}
			f[name] = true
		}
		f.add(member.Type)
	}
}

// within is the type that a field holds, alone or many times.
func within(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	return t
}

// isValue reports whether a type is written as one value, whatever it is made of: a time, a quantity.
func isValue(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]())
}

// members are the fields of a struct that JSON knows. Embedded ones have no name of their own.
func members(t reflect.Type) []reflect.StructField {
	var all []reflect.StructField
	for i := range t.NumField() {
		if member := t.Field(i); member.IsExported() && (member.Anonymous || jsonName(member) != "-") {
			member.Anonymous = jsonName(member) == ""
			all = append(all, member)
		}
	}
	return all
}

func jsonName(member reflect.StructField) string {
	name, _, _ := strings.Cut(member.Tag.Get("json"), ",")
	return name
}

// nameOf is the name by which a field is classified: core.v1.PodSpec.nodeName.
func nameOf(t reflect.Type, member reflect.StructField) string {
	folder, version := path.Split(t.PkgPath())
	return strings.Join([]string{path.Base(folder), version, t.Name(), jsonName(member)}, ".")
}

// What is said to be refused is refused with these words, and what is said to be dropped is not there, wherever in a
// kind that is stored the field stands. CustomResourceDefinitions, which are not ours, have a test of their own.
func TestFieldsThatAreRefusedOrDropped(t *testing.T) {
	untried := map[string]bool{}
	known := classification(t)
	for name, c := range known {
		if (c.is(refused) || c.is(dropped)) && !strings.HasPrefix(name, definitionFields) {
			untried[name] = true
		}
	}
	for _, s := range installed(t) {
		if s.readOnly() {
			continue
		}
		visit(reflect.TypeOf(s.New()), nil, nil, func(p place) {
			c := known[p.name]
			if !c.is(refused) && !c.is(dropped) {
				return
			}
			delete(untried, p.name)
			if problem := s.try(t, p, c); problem != "" {
				t.Errorf("%s of %s (%s): %s", p, s.kind.Kind, p.name, problem)
			}
		})
	}
	for name := range untried {
		t.Errorf("%s stands in no kind that is stored", name)
	}
}

// place is where in a kind a field stands. A step is a name or an index.
type place struct {
	name  string
	steps []any
	of    reflect.Type
}

// String is the path as errors have it.
func (p place) String() string {
	var at *field.Path
	for _, step := range p.steps {
		switch step := step.(type) {
		case string:
			at = at.Child(step)
		case int:
			at = at.Index(step)
		}
	}
	return at.String()
}

// visit shows every place of every field of a type, in the first element of a list and under one key of a map.
func visit(t reflect.Type, steps []any, above []reflect.Type, show func(place)) {
	switch {
	case t.Kind() == reflect.Pointer:
		visit(t.Elem(), steps, above, show)
	case t.Kind() == reflect.Slice:
		visit(t.Elem(), append(slices.Clone(steps), 0), above, show)
	case t.Kind() == reflect.Map:
		visit(t.Elem(), append(slices.Clone(steps), "x"), above, show)
	case t.Kind() == reflect.Struct && !isValue(t) && !slices.Contains(above, t):
		for _, member := range members(t) {
			at := steps
			if !member.Anonymous {
				at = append(slices.Clone(steps), jsonName(member))
				show(place{nameOf(t, member), at, member.Type})
			}
			visit(member.Type, at, append(slices.Clone(above), t), show)
		}
	}
}

// try writes the resource's example with the field, and says what is not as it is classified.
func (s *subject) try(t *testing.T, p place, c classified) string {
	t.Helper()
	content := with(runtime.DeepCopyJSON(s.Example), p.steps, something(p.of)).(map[string]any)
	obj := s.object(content)
	if obj == nil {
		t.Fatalf("%s of %s: %v does not fit the type", p, s.kind.Kind, content)
	}
	s.scheme.Default(obj)
	if !p.isSet(t, obj) {
		t.Fatalf("%s of %s is not set by %v", p, s.kind.Kind, content)
	}
	var errs field.ErrorList
	if p.steps[0] == "status" && s.Status != nil {
		old := s.object(s.Example)
		s.scheme.Default(old)
		s.Status.PrepareForUpdate(t.Context(), obj, old)
		errs = s.Status.ValidateUpdate(t.Context(), obj, old)
	} else {
		s.Object.PrepareForCreate(t.Context(), obj)
		errs = s.Object.Validate(t.Context(), obj)
	}
	switch {
	case c.is(dropped) && p.isSet(t, obj):
		return fmt.Sprintf("it is not dropped, but %v", find(fields(t, obj), p.steps))
	case c.is(refused) && !slices.ContainsFunc(errs, func(err *field.Error) bool { return refuses(err, p, c.reason) }):
		return fmt.Sprintf("it is not refused with %q, but with: %v", c.reason, errs.ToAggregate())
	}
	return ""
}

// refuses reports whether an error is about the field in the given words, or forbids what holds the field.
func refuses(err *field.Error, p place, reason string) bool {
	if !strings.HasPrefix(p.String(), err.Field) {
		return false
	}
	return strings.Contains(err.Detail, reason) || err.Type == field.ErrorTypeForbidden && err.Field != p.String()
}

// with is the value with something at the place: what is missing on the way is made.
func with(in any, steps []any, value any) any {
	if len(steps) == 0 {
		return value
	}
	if name, ok := steps[0].(string); ok {
		object, _ := in.(map[string]any)
		if object == nil {
			object = map[string]any{}
		}
		object[name] = with(object[name], steps[1:], value)
		return object
	}
	list, _ := in.([]any)
	if len(list) == 0 {
		list = []any{nil}
	}
	list[0] = with(list[0], steps[1:], value)
	return list
}

// find is what stands at the place.
func find(in any, steps []any) any {
	for _, step := range steps {
		switch at := in.(type) {
		case map[string]any:
			in = at[step.(string)]
		case []any:
			if len(at) == 0 {
				return nil
			}
			in = at[0]
		default:
			return nil
		}
	}
	return in
}

// isSet reports whether the object has a value at the place.
func (p place) isSet(t *testing.T, obj runtime.Object) bool {
	t.Helper()
	value := find(fields(t, obj), p.steps)
	object, ok := value.(map[string]any)
	if ok && p.of.Kind() == reflect.Struct {
		return len(object) > 0 // a struct is there also where nothing is said
	}
	return value != nil
}

// something is a value of a type that is not empty.
func something(t reflect.Type) any {
	switch t.Kind() {
	case reflect.Pointer:
		return something(t.Elem())
	case reflect.Slice:
		return []any{something(t.Elem())}
	case reflect.Map:
		return map[string]any{"x": something(t.Elem())}
	case reflect.Struct:
		switch {
		case t == reflect.TypeFor[metav1.Time]():
			return "2026-01-31T10:00:00Z"
		case t == reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrBool]():
			return true
		case isValue(t):
			return "1"
		}
		object := map[string]any{}
		if all := members(t); len(all) > 0 {
			object[jsonName(all[0])] = something(all[0].Type)
		}
		return object
	case reflect.Bool:
		return true
	case reflect.String:
		return "x"
	default:
		return int64(1)
	}
}
