package registry_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	"sigs.k8s.io/yaml"

	"keelson.dev/services/apiserver/internal/registry"
	"keelson.dev/services/apiserver/internal/registry/rest"
	"keelson.dev/services/apiserver/internal/scheme"
)

// The suite runs over every resource that is installed, with random objects. A resource's folder tells it in
// testdata/suite.yaml a valid object, and which checks the resource fails for a reason.

// subject is one installed resource.
type subject struct {
	rest.Description
	scheme *runtime.Scheme
	codecs serializer.CodecFactory
	// kind is the resource's kind in the version in which it is stored, versions are all that it is served in.
	kind     schema.GroupVersionKind
	versions []schema.GroupVersionKind

	example
	// Settled is a field that the apiserver writes of itself into every object, some time after it was made.
	Settled    string       `json:"settled"`
	Exceptions []*exception `json:"exceptions"`

	// found are the faults told already.
	found map[string]bool
}

// exception is a check that a resource fails on purpose.
type exception struct {
	Check string `json:"check"`
	// Path is the field that the check finds fault with.
	Path   string `json:"path"`
	Reason string `json:"reason"`
	met    bool
}

// readOnly reports whether the resource is only read: its objects are made on request.
func (s *subject) readOnly() bool { return s.Object == nil }

// newScheme has all types that are served.
func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s, err := scheme.New()
	if err != nil {
		t.Fatal(err)
	}
	if err := registry.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	return s
}

// installed are all resources that are stored or read.
func installed(t *testing.T) []*subject {
	t.Helper()
	s := newScheme(t)
	// The server does not offer CBOR yet; the types are ready for it.
	codecs := serializer.NewCodecFactory(s, serializer.WithSerializer(cbor.NewSerializerInfo))
	var all []*subject
	for _, group := range registry.Groups(registry.Config{}) {
		for _, entry := range group.Entries {
			described, ok := entry.(interface {
				Describe(*runtime.Scheme) rest.Description
			})
			if ok {
				all = append(all, newSubject(t, described.Describe(s), s, codecs))
			}
		}
	}
	if len(all) < 17 {
		t.Fatalf("%d resources are installed: the suite sees too few", len(all))
	}
	return all
}

func newSubject(t *testing.T, d rest.Description, s *runtime.Scheme, codecs serializer.CodecFactory) *subject {
	t.Helper()
	version, err := scheme.StorageVersion(s, d.Group, d.New())
	if err != nil {
		t.Fatal(err)
	}
	kinds, _, err := s.ObjectKinds(d.New())
	if err != nil {
		t.Fatal(err)
	}
	sub := &subject{Description: d, scheme: s, codecs: codecs, kind: version.WithKind(kinds[0].Kind),
		found: map[string]bool{}, example: example{Names: "random-%d"}}
	for kind := range s.AllKnownTypes() {
		internal := schema.GroupVersion{Group: kind.Group, Version: runtime.APIVersionInternal}
		hub := s.KnownTypes(internal)[kind.Kind]
		if kind.Version != runtime.APIVersionInternal && hub == s.KnownTypes(version)[sub.kind.Kind] {
			sub.versions = append(sub.versions, kind)
		}
	}
	content, err := os.ReadFile(filepath.Join(sub.folder(), "testdata", "suite.yaml"))
	if err != nil {
		t.Fatalf("%s has no example for the suite: %v", d.GroupResource, err)
	}
	if err := yaml.UnmarshalStrict(content, sub); err != nil {
		t.Fatalf("reading the suite's example of %s: %v", d.GroupResource, err)
	}
	return sub
}

// folder is <group>/<singular>, with the first part of the group's name.
func (s *subject) folder() string {
	group, _, _ := strings.Cut(s.Group, ".")
	if group == "" {
		group = "core"
	}
	return filepath.Join(group, s.Singular)
}

// object is a typed object from its fields; nil if they do not fit the type.
func (s *subject) object(fields map[string]any) runtime.Object {
	obj := s.New()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, obj); err != nil {
		return nil
	}
	return obj
}

// fault reports what a check found, unless the resource's folder gives a reason for it.
func (s *subject) fault(t *testing.T, check, path, format string, args ...any) {
	t.Helper()
	for _, e := range s.Exceptions {
		if e.Check == check && (path == e.Path || strings.HasPrefix(path, e.Path+".")) {
			e.met = true
			return
		}
	}
	if !s.found[check+path] {
		t.Errorf("%s: %s: %s", check, path, fmt.Sprintf(format, args...))
	}
	s.found[check+path] = true
}

// fields are an object's fields as a client sees them.
func fields(t *testing.T, obj runtime.Object) map[string]any {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// part is the spec or the status of an object.
func part(t *testing.T, obj runtime.Object, name string) any {
	t.Helper()
	value, _, err := unstructured.NestedFieldNoCopy(fields(t, obj), name)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// TestSuite checks what can be told without a server.
func TestSuite(t *testing.T) {
	const seeds = 30
	for _, s := range installed(t) {
		t.Run(s.GroupResource.String(), func(t *testing.T) {
			for seed := range int64(seeds) {
				if !s.readOnly() {
					s.checkDefaults(t, seed)
					s.checkValidation(t, seed)
					s.checkWrites(t, seed)
				}
				s.checkEncodings(t, seed)
				s.checkColumns(t, seed)
			}
			for _, e := range s.Exceptions {
				if !e.met {
					t.Errorf("%s: %s: the suite finds no fault any more, so the folder needs no exception", e.Check,
						e.Path)
				}
				if e.Reason == "" {
					t.Errorf("%s: %s: an exception gives its reason", e.Check, e.Path)
				}
			}
		})
	}
}
