package registry_test

import (
	"math/rand" //nolint:depguard // the suite's random objects take a source of this package
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	genericrest "k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kube-openapi/pkg/builder3"
	openapiutil "k8s.io/kube-openapi/pkg/util"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"keelson.dev/services/apiserver/internal/openapi"
	"keelson.dev/services/apiserver/internal/typedfields"
)

// TestSuiteOwners writes random objects in many ways, and wants the same fields to have the same managers as they have
// with the types that the library makes itself.
func TestSuiteOwners(t *testing.T) {
	const seeds = 3
	subjects := installed(t)
	ours, library := converters(t, subjects)
	for _, s := range subjects {
		if s.readOnly() {
			continue
		}
		for _, kind := range s.versions {
			t.Run(s.GroupResource.String()+"/"+kind.Version, func(t *testing.T) {
				for seed := range int64(seeds) {
					s.checkOwners(t, seed, s.history(t, ours, kind, seed), s.history(t, library, kind, seed))
				}
			})
		}
	}
}

// converters are the one that the server uses and the one that the library makes by itself.
func converters(t *testing.T, subjects []*subject) (ours, library managedfields.TypeConverter) {
	t.Helper()
	var kinds typedfields.Kinds
	var names []string
	scheme := subjects[0].scheme
	for _, s := range subjects {
		kinds.Stored = append(kinds.Stored, s.versions...)
		for _, kind := range s.versions {
			sample, err := scheme.New(kind)
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, openapiutil.GetCanonicalTypeName(sample))
		}
	}
	_, config := openapi.Configs(scheme)
	ours, err := typedfields.New(scheme, config, kinds)
	if err != nil {
		t.Fatal(err)
	}
	definitions, err := builder3.BuildOpenAPIDefinitionsForResources(config, names...)
	if err != nil {
		t.Fatal(err)
	}
	if library, err = managedfields.NewTypeConverter(definitions, false); err != nil {
		t.Fatal(err)
	}
	return ours, library
}

// written is what became of one write.
type written struct {
	how    string
	object runtime.Object
	failed error
}

func (s *subject) checkOwners(t *testing.T, seed int64, ours, library []written) {
	t.Helper()
	for i := range library {
		got, want := ours[i], library[i]
		if (got.failed == nil) != (want.failed == nil) {
			t.Errorf("seed %d: %s: it failed with %v, want %v", seed, want.how, got.failed, want.failed)
			return
		}
		if want.failed != nil {
			continue
		}
		if !equality.Semantic.DeepEqual(managers(t, got.object), managers(t, want.object)) {
			t.Errorf("seed %d: %s: the managed fields are\n%v, want\n%v", seed, want.how, managers(t, got.object),
				managers(t, want.object))
			return
		}
		if !equality.Semantic.DeepEqual(got.object, want.object) {
			t.Errorf("seed %d: %s: it became another object", seed, want.how)
			return
		}
	}
}

func managers(t *testing.T, object runtime.Object) []metav1.ManagedFieldsEntry {
	t.Helper()
	accessor, err := meta.Accessor(object)
	if err != nil {
		t.Fatal(err)
	}
	return accessor.GetManagedFields()
}

// history is what becomes of one object that is written again and again, each time a second later.
func (s *subject) history(
	t *testing.T, types managedfields.TypeConverter, kind schema.GroupVersionKind, seed int64,
) (all []written) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { all = s.writes(t, types, kind, seed) })
	return all
}

func (s *subject) writes(
	t *testing.T, types managedfields.TypeConverter, kind schema.GroupVersionKind, seed int64,
) []written {
	t.Helper()
	object, status := s.manager(t, types, kind, "", s.Object), s.manager(t, types, kind, "status", s.Status)
	var all []written
	live := s.New()
	note := func(how string, object runtime.Object, err error) {
		w := written{how: how, failed: err}
		if err == nil {
			live, w.object = object, object.DeepCopyObject()
		}
		all = append(all, w)
		time.Sleep(time.Second)
	}
	update := func(how string, as *managedfields.FieldManager, next runtime.Object) {
		note(how, as.UpdateNoErrors(live.DeepCopyObject(), next, how), nil)
	}
	apply := func(how string, as *managedfields.FieldManager, object runtime.Object, force bool) {
		versioned, err := s.scheme.ConvertToVersion(object, kind.GroupVersion())
		if err != nil {
			t.Fatal(err)
		}
		next := &unstructured.Unstructured{Object: fields(t, versioned)}
		next.SetManagedFields(nil)
		applied, err := as.Apply(live.DeepCopyObject(), next, how, force)
		note(how, applied, err)
	}
	update("created", object, s.random(seed))
	update("changed", object, s.changed(t, live, seed+100))
	update("status", status, s.changed(t, live, seed+101))
	update("unchanged", object, live.DeepCopyObject())
	apply("applied", object, s.random(seed+102), false)
	apply("forced", object, s.random(seed+102), true)
	apply("forced again", object, s.changed(t, s.random(seed+102), seed+103), true)
	apply("status applied", status, s.changed(t, live, seed+104), true)
	update("status", status, s.changed(t, live, seed+105))
	update("changed after", object, s.changed(t, live, seed+106))
	other := s.random(seed + 107)
	forget(t, other, live)
	update("replaced", object, other)
	return all
}

// manager keeps track of managed fields as the server does for an object or its status.
func (s *subject) manager(
	t *testing.T, types managedfields.TypeConverter, kind schema.GroupVersionKind, subresource string, strategy any,
) *managedfields.FieldManager {
	t.Helper()
	var reset map[fieldpath.APIVersion]fieldpath.Filter
	if resets, ok := strategy.(genericrest.ResetFieldsStrategy); ok && resets != nil {
		reset = fieldpath.NewExcludeFilterSetMap(resets.GetResetFields())
	}
	hub := schema.GroupVersion{Group: kind.Group, Version: runtime.APIVersionInternal}
	m, err := managedfields.NewDefaultFieldManager(types, runtime.UnsafeObjectConvertor(s.scheme), s.scheme, s.scheme,
		kind, hub, subresource, reset)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// changed is the object with some fields of another one.
func (s *subject) changed(t *testing.T, object runtime.Object, seed int64) runtime.Object {
	t.Helper()
	content := runtime.DeepCopyJSON(fields(t, object))
	leaves := leavesOf(fields(t, s.random(seed)), nil)
	random := rand.New(rand.NewSource(seed))
	random.Shuffle(len(leaves), func(i, j int) { leaves[i], leaves[j] = leaves[j], leaves[i] })
	for _, l := range leaves[:min(len(leaves), 4)] {
		next := runtime.DeepCopyJSON(content)
		if put(next, l.path, l.value) && s.object(next) != nil {
			content = next
		}
	}
	return s.object(content)
}

// forget leaves an object the managers that live has.
func forget(t *testing.T, object, live runtime.Object) {
	t.Helper()
	accessor, err := meta.Accessor(object)
	if err != nil {
		t.Fatal(err)
	}
	accessor.SetManagedFields(managers(t, live))
}
