package kindfuzz

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	extensions "k8s.io/apiextensions-apiserver/pkg/apiserver"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresourcedefinition"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	genericrest "k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/yaml"

	"keelson.dev/services/apiserver/internal/registry"
	"keelson.dev/services/apiserver/internal/registry/rest"
	"keelson.dev/services/apiserver/internal/scheme"
)

// registryFolder is where the kinds have their examples.
const registryFolder = "../registry"

// kind is what is done with what clients send as an object of a kind.
type kind struct {
	name string
	// example is a valid object.
	example   runtime.Object
	encodings []encoding
	object    genericrest.RESTCreateUpdateStrategy
	// status are the rules for writes of /status; nil: there is none.
	status genericrest.RESTUpdateStrategy
}

// encoding is one way in which objects of a kind are sent, in one of its versions.
type encoding struct {
	name   string
	encode func(runtime.Object) ([]byte, error)
	// decode returns the object as the server handles it, with its defaults.
	decode func([]byte) (runtime.Object, error)
}

// kinds are all, in the order of their names; KEELSON_FUZZ_KIND leaves one.
func kinds(t testing.TB) []*kind {
	t.Helper()
	all := append(builtIn(t), definitions(t), widgets(t))
	slices.SortFunc(all, func(a, b *kind) int { return strings.Compare(a.name, b.name) })
	if only := os.Getenv("KEELSON_FUZZ_KIND"); only != "" {
		all = slices.DeleteFunc(all, func(k *kind) bool { return k.name != only })
		if len(all) == 0 {
			t.Fatalf("KEELSON_FUZZ_KIND: there is no kind %s", only)
		}
	}
	return all
}

// builtIn are the kinds of the registry that are written.
func builtIn(t testing.TB) []*kind {
	t.Helper()
	types, err := scheme.New()
	if err != nil {
		t.Fatal(err)
	}
	if err := registry.AddToScheme(types); err != nil {
		t.Fatal(err)
	}
	var all []*kind
	for _, group := range registry.Groups(registry.Config{}) {
		for _, entry := range group.Entries {
			described, ok := entry.(interface {
				Describe(*runtime.Scheme) rest.Description
			})
			if !ok {
				continue
			}
			d := described.Describe(types)
			if d.Object == nil {
				continue
			}
			first, _, _ := strings.Cut(d.Group, ".")
			if first == "" {
				first = "core"
			}
			k := &kind{name: d.String(), object: d.Object, status: d.Status,
				encodings: encodings(types, scheme.Codecs(types), d.Group, d.New)}
			k.readExample(t, filepath.Join(registryFolder, first, d.Singular, "testdata", "suite.yaml"), d.New)
			all = append(all, k)
		}
	}
	return all
}

// definitions are CustomResourceDefinitions, which the library serves.
func definitions(t testing.TB) *kind {
	t.Helper()
	k := &kind{name: "customresourcedefinitions.apiextensions.k8s.io",
		object: customresourcedefinition.NewStrategy(extensions.Scheme),
		encodings: encodings(extensions.Scheme, extensions.Codecs, apiextensions.GroupName,
			func() runtime.Object { return &apiextensions.CustomResourceDefinition{} })}
	k.status = customresourcedefinition.NewStatusStrategy(extensions.Scheme)
	k.readExample(t, filepath.Join(registryFolder, "testdata/kinds", k.name+".yaml"),
		func() runtime.Object { return &apiextensionsv1.CustomResourceDefinition{} })
	hub := schema.GroupVersion{Group: apiextensions.GroupName, Version: runtime.APIVersionInternal}
	internal, err := extensions.Scheme.ConvertToVersion(k.example, hub)
	if err != nil {
		t.Fatal(err)
	}
	k.example = internal
	return k
}

// readExample reads the example of a file.
func (k *kind) readExample(t testing.TB, file string, newObject func() runtime.Object) {
	t.Helper()
	k.example = newObject()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(exampleIn(t, file), k.example); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

func exampleIn(t testing.TB, file string) map[string]any {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var said struct {
		Example map[string]any `json:"example"`
	}
	if err := yaml.Unmarshal(content, &said); err != nil || said.Example == nil {
		t.Fatalf("%s has no example: %v", file, err)
	}
	return said.Example
}

// encodings are those of a kind in all of its versions, as the server reads and writes them.
func encodings(types *runtime.Scheme, codecs serializer.CodecFactory, group string,
	newObject func() runtime.Object) []encoding {
	kinds, _, err := types.ObjectKinds(newObject())
	if err != nil {
		panic(err)
	}
	hub := schema.GroupVersion{Group: group, Version: runtime.APIVersionInternal}
	var all []encoding
	for _, version := range types.PrioritizedVersionsForGroup(group) {
		versioned := version.WithKind(kinds[0].Kind)
		if !types.Recognizes(versioned) {
			continue
		}
		for _, info := range codecs.SupportedMediaTypes() {
			all = append(all, encoding{
				name: version.String() + " as " + info.MediaType,
				encode: func(obj runtime.Object) ([]byte, error) {
					return runtime.Encode(codecs.EncoderForVersion(info.Serializer, version), obj)
				},
				decode: func(data []byte) (runtime.Object, error) {
					decoder := codecs.DecoderToVersion(info.Serializer, hub)
					obj, got, err := decoder.Decode(data, &versioned, newObject())
					if err == nil && *got != versioned {
						return nil, runtime.NewNotRegisteredErrForKind("fuzz", *got)
					}
					return obj, err
				},
			})
		}
	}
	return all
}
