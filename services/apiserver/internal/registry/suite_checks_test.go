package registry_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// checkDefaults wants defaulting to touch only what is unset, and a second time nothing.
func (s *subject) checkDefaults(t *testing.T, seed int64) {
	t.Helper()
	before, once := s.random(seed), s.defaulted(seed)
	lost(fields(t, before), fields(t, once), "", func(path string, set, now any) {
		s.fault(t, "defaults keep what is set", path, "seed %d: %v became %v", seed, set, now)
	})
	twice := once.DeepCopyObject()
	s.scheme.Default(twice)
	differing(fields(t, once), fields(t, twice), "", func(path, difference string) {
		s.fault(t, "defaults are the same twice", path, "seed %d: %s", seed, difference)
	})
}

// checkValidation wants every check to end, to change nothing and to say the same twice.
func (s *subject) checkValidation(t *testing.T, seed int64) {
	t.Helper()
	obj, old := s.defaulted(seed), s.defaulted(seed+1)
	checks := map[string]func() field.ErrorList{
		"create":             func() field.ErrorList { return s.Object.Validate(t.Context(), obj) },
		"update":             func() field.ErrorList { return s.Object.ValidateUpdate(t.Context(), obj, old) },
		"update of an empty": func() field.ErrorList { return s.Object.ValidateUpdate(t.Context(), obj, s.empty()) },
		"update to an empty": func() field.ErrorList { return s.Object.ValidateUpdate(t.Context(), s.empty(), old) },
		"warnings on create": func() field.ErrorList { s.Object.WarningsOnCreate(t.Context(), obj); return nil },
		"warnings on an update": func() field.ErrorList {
			s.Object.WarningsOnUpdate(t.Context(), obj,
				old)
			return nil
		},
	}
	if s.Status != nil {
		checks["status"] = func() field.ErrorList { return s.Status.ValidateUpdate(t.Context(), obj, old) }
	}
	objBefore, oldBefore := obj.DeepCopyObject(), old.DeepCopyObject()
	for name, check := range checks {
		first, second := said(check), said(check)
		if first != second || strings.HasPrefix(first, "panic") {
			s.fault(t, "validation is pure", name, "seed %d: it says\n%s\nthen\n%s", seed, first, second)
		}
	}
	if !equality.Semantic.DeepEqual(obj, objBefore) || !equality.Semantic.DeepEqual(old, oldBefore) {
		s.fault(t, "validation is pure", "object", "seed %d: a check changed it", seed)
	}
}

func (s *subject) empty() runtime.Object {
	obj := s.New()
	s.scheme.Default(obj)
	return obj
}

// said is what a check says, in any order, a panic too.
func said(check func() field.ErrorList) (text string) {
	defer func() {
		if r := recover(); r != nil {
			text = fmt.Sprintf("panic: %v", r)
		}
	}()
	var lines []string
	for _, err := range check() {
		lines = append(lines, err.Error())
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// checkWrites wants the writes of the object and of the status to leave each other alone, and one that changes nothing
// to change nothing.
func (s *subject) checkWrites(t *testing.T, seed int64) {
	t.Helper()
	old := s.defaulted(seed)
	updated := s.defaulted(seed + 1)
	s.Object.PrepareForUpdate(t.Context(), updated, old)
	differing(part(t, old, "status"), part(t, updated, "status"), "status", func(path, difference string) {
		s.fault(t, "a write of the object keeps the status", path, "seed %d: %s", seed, difference)
	})
	created, other := s.defaulted(seed), s.withStatusOf(t, seed, seed+1)
	s.Object.PrepareForCreate(t.Context(), created)
	s.Object.PrepareForCreate(t.Context(), other)
	differing(part(t, created, "status"), part(t, other, "status"), "status", func(path, difference string) {
		s.fault(t, "a new object's status is not the client's", path, "seed %d: %s", seed, difference)
	})
	again := created.DeepCopyObject()
	s.Object.PrepareForUpdate(t.Context(), again, created)
	differing(fields(t, created), fields(t, again), "", func(path, difference string) {
		s.fault(t, "an update that changes nothing", path, "seed %d: %s", seed, difference)
	})
	if s.Status == nil {
		return
	}
	reported := s.defaulted(seed + 1)
	s.Status.PrepareForUpdate(t.Context(), reported, old)
	differing(part(t, old, "spec"), part(t, reported, "spec"), "spec", func(path, difference string) {
		s.fault(t, "a write of the status keeps the spec", path, "seed %d: %s", seed, difference)
	})
}

// withStatusOf is one random object with the status of another.
func (s *subject) withStatusOf(t *testing.T, seed, statusSeed int64) runtime.Object {
	t.Helper()
	content := fields(t, s.defaulted(seed))
	if status := part(t, s.defaulted(statusSeed), "status"); status != nil {
		content["status"] = status
	}
	return s.object(content)
}

// checkEncodings wants nothing to be lost in any encoding of any version, and a field that no version has to be named.
func (s *subject) checkEncodings(t *testing.T, seed int64) {
	t.Helper()
	want := s.defaulted(seed)
	want.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	for _, kind := range s.versions {
		internal := schema.GroupVersion{Group: kind.Group, Version: runtime.APIVersionInternal}
		for _, info := range s.codecs.SupportedMediaTypes() {
			encoder := s.codecs.EncoderForVersion(info.Serializer, kind.GroupVersion())
			data, err := runtime.Encode(encoder, s.random(seed))
			if err != nil {
				t.Fatalf("seed %d: encoding as %s of %s: %v", seed, info.MediaType, kind, err)
			}
			got, err := runtime.Decode(s.codecs.DecoderToVersion(info.Serializer, internal), data)
			if err != nil {
				t.Fatalf("seed %d: decoding from %s of %s: %v", seed, info.MediaType, kind, err)
			}
			got.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
			if !equality.Semantic.DeepEqual(want, got) {
				s.fault(t, "encodings lose nothing", info.MediaType, "seed %d, %s:\n%+v\n%+v", seed, kind, want, got)
			}
		}
		if seed == 0 {
			s.checkUnknown(t, kind)
		}
	}
}

// checkUnknown adds a field that does not exist to the object and to each of its parts.
func (s *subject) checkUnknown(t *testing.T, kind schema.GroupVersionKind) {
	t.Helper()
	const unknown = "unheardOf"
	content := fields(t, s.object(s.Example))
	for _, at := range []string{"", "metadata", "spec", "status"} {
		mistaken := runtime.DeepCopyJSON(content)
		var path []string
		if at != "" {
			if _, isMap := mistaken[at].(map[string]any); !isMap {
				continue
			}
			path = append(path, at)
		}
		path = append(path, unknown)
		if err := unstructured.SetNestedField(mistaken, "x", path...); err != nil {
			t.Fatal(err)
		}
		object := &unstructured.Unstructured{Object: mistaken}
		object.SetGroupVersionKind(kind)
		for _, info := range s.codecs.SupportedMediaTypes() {
			// Protobuf ignores unknown fields, the library's CBOR counts them instead of naming them.
			if info.MediaType == runtime.ContentTypeProtobuf || info.MediaType == runtime.ContentTypeCBOR {
				continue
			}
			data, err := runtime.Encode(info.Serializer, object)
			if err != nil {
				t.Fatal(err)
			}
			_, _, err = info.StrictSerializer.Decode(data, &kind, s.New())
			if name := strings.Join(path, "."); err == nil || !strings.Contains(err.Error(), `unknown field "`+name+
				`"`) {
				s.fault(t, "unknown fields are named", name, "%s of %s: %v", info.MediaType, kind, err)
			}
		}
	}
}

// checkColumns wants a cell under each heading, of any object and of an empty one.
func (s *subject) checkColumns(t *testing.T, seed int64) {
	t.Helper()
	for _, obj := range []runtime.Object{s.defaulted(seed), s.New()} {
		table, err := s.Table.ConvertToTable(t.Context(), obj, nil)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if len(table.Rows) != 1 || len(table.Rows[0].Cells) != len(table.ColumnDefinitions) ||
			len(table.ColumnDefinitions) < 2 {
			s.fault(t, "every column has a cell", "", "seed %d: %v under %v", seed, table.Rows, table.ColumnDefinitions)
			continue
		}
		accessor, err := meta.Accessor(obj)
		if err != nil {
			t.Fatal(err)
		}
		for i, column := range table.ColumnDefinitions {
			switch cell := table.Rows[0].Cells[i].(type) {
			case string, int64, bool:
				if column.Name == "Name" && cell != accessor.GetName() {
					s.fault(t, "every column has a cell", column.Name, "seed %d: %v", seed, cell)
				}
			default:
				s.fault(t, "every column has a cell", column.Name, "seed %d: a cell of type %T", seed, cell)
			}
		}
	}
}
