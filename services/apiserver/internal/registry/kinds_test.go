package registry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	restclient "k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"keelson.dev/services/apiserver/internal/servertest"
)

// kindsFolder has the examples of kinds that no folder of the registry has: those that the library serves, those that
// a group serves in another form, and one that is defined for the tests.
const kindsFolder = "testdata/kinds"

// example is an object of a kind, and how others are made after it.
type example struct {
	Example map[string]any `json:"example"`
	// Names makes the names of further objects from numbers, for a kind whose names are no words.
	Names string `json:"names"`
	// NameIn is a field that repeats the name up to its first dot; empty: there is none.
	NameIn string `json:"nameIn"`
	// Patches are, by subresource, fields that show that it was patched, where those that others have do not.
	Patches map[string]map[string]any `json:"patches"`
}

// named is the example with another name.
func (e *example) named(t testing.TB, name string) map[string]any {
	t.Helper()
	content := runtime.DeepCopyJSON(e.Example)
	content["metadata"].(map[string]any)["name"] = name
	if e.NameIn != "" {
		first, _, _ := strings.Cut(name, ".")
		if err := unstructured.SetNestedField(content, first, strings.Split(e.NameIn, ".")...); err != nil {
			t.Fatal(err)
		}
	}
	return content
}

// servedKind is a kind as discovery tells of it, on a server.
type servedKind struct {
	example
	version      schema.GroupVersion
	resource     metav1.APIResource
	subresources []string
	// custom: a CustomResourceDefinition made it.
	custom bool

	// types are those of all built-in kinds.
	types     *runtime.Scheme
	client    *http.Client
	host      string
	namespace string
	made      int
}

// TestKindsOnServer asks of every kind that a server offers, a custom one too, what clients rely on for all kinds.
func TestKindsOnServer(t *testing.T) {
	names := replaceNames(t)
	server := servertest.Start(t)
	defineWidgets(t, server)
	for i, k := range servedKinds(t, server) {
		t.Run(k.String(), func(t *testing.T) {
			k.namespace = ""
			if k.resource.Namespaced {
				k.namespace = server.Namespace(t, fmt.Sprintf("kind-%d", i))
			}
			if !slices.Contains(k.resource.Verbs, "create") {
				k.checkReadOnlyPatches(t)
				return
			}
			t.Run("Patches", k.testPatches)
			t.Run("RefusedPatches", k.testRefusedPatches)
			t.Run("Strictness", k.testStrictness)
			t.Run("Encodings", k.testEncodings)
			t.Run("GenerateName", func(t *testing.T) { k.testGenerateName(t, names) })
			t.Run("DeleteCollection", k.testDeleteCollection)
		})
	}
}

func (k *servedKind) String() string { return k.version.String() + "/" + k.resource.Name }

func (k *servedKind) kind() schema.GroupVersionKind { return k.version.WithKind(k.resource.Kind) }

// servedKinds are the kinds of a server that are stored or read; not those that are only asked, as reviews are.
func servedKinds(t *testing.T, server *servertest.Server) []*servedKind {
	t.Helper()
	_, lists, err := server.Client.Discovery().ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	config := server.ConfigAs(servertest.Admin)
	client, err := restclient.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	types := newScheme(t)
	if err := apiextensionsv1.AddToScheme(types); err != nil { // its library serves it
		t.Fatal(err)
	}
	examples := examplesOf(t)
	var all []*servedKind
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, resource := range list.APIResources {
			if strings.Contains(resource.Name, "/") || !slices.Contains(resource.Verbs, "list") {
				continue
			}
			k := &servedKind{version: version, resource: resource, types: types, client: client, host: config.Host,
				subresources: subresourcesOf(resource.Name, list.APIResources, "patch"),
				custom:       version.Group == "custom.example.com"}
			k.example = examples(t, k.kind(), resource.Name)
			all = append(all, k)
		}
	}
	if len(all) < 60 {
		t.Fatalf("%d kinds are served: the test sees too few", len(all))
	}
	return all
}

// subresourcesOf are the names of a resource's subresources that can be asked to do something.
func subresourcesOf(resource string, all []metav1.APIResource, verb string) []string {
	var names []string
	for _, r := range all {
		if name, ok := strings.CutPrefix(r.Name, resource+"/"); ok && slices.Contains(r.Verbs, verb) {
			names = append(names, name)
		}
	}
	return names
}

// examplesOf finds the example of a kind in the form of a version: a file for that group, else what the suite's is
// converted to.
func examplesOf(t *testing.T) func(t *testing.T, kind schema.GroupVersionKind, resource string) example {
	t.Helper()
	subjects := map[schema.GroupResource]*subject{}
	for _, s := range installed(t) {
		subjects[s.GroupResource] = s
	}
	return func(t *testing.T, kind schema.GroupVersionKind, resource string) example {
		t.Helper()
		file := filepath.Join(kindsFolder, resource+"."+kind.Group+".yaml")
		if content, err := os.ReadFile(file); err == nil {
			e := example{Names: "random-%d"}
			if err := yaml.UnmarshalStrict(content, &e); err != nil {
				t.Fatalf("reading %s: %v", file, err)
			}
			return e
		}
		s, known := subjects[schema.GroupResource{Group: kind.Group, Resource: resource}]
		if !known {
			t.Fatalf("%s has no example: neither a folder of the registry nor %s", kind, file)
		}
		e := s.example
		if kind.GroupVersion() != s.kind.GroupVersion() {
			converted, err := s.scheme.ConvertToVersion(s.object(e.Example), kind.GroupVersion())
			if err != nil {
				t.Fatal(err)
			}
			e.Example = fields(t, converted)
			delete(e.Example, "status")
		}
		return e
	}
}

// defineWidgets makes the kind that is not built in, and returns when discovery tells of it.
func defineWidgets(t *testing.T, server *servertest.Server) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(kindsFolder, "widgets.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Client.Discovery().RESTClient().Post().
		AbsPath("/apis/apiextensions.k8s.io/v1/customresourcedefinitions").
		SetHeader("Content-Type", "application/yaml").Body(content).Do(t.Context()).Error(); err != nil {
		t.Fatalf("defining widgets: %v", err)
	}
	servertest.Eventually(t, "widgets are discovered", func(context.Context) string {
		_, lists, err := server.Client.Discovery().ServerGroupsAndResources()
		if err != nil {
			return err.Error()
		}
		for _, list := range lists {
			if list.GroupVersion == "custom.example.com/v1" {
				return ""
			}
		}
		return "they are not"
	})
}

// answer is what a server says to one request.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// object is the body of an answer.
func (a answer) object(t *testing.T) map[string]any {
	t.Helper()
	var content map[string]any
	if err := json.Unmarshal(a.body, &content); err != nil {
		t.Fatalf("%v of %s", err, a)
	}
	return content
}

func (a answer) String() string { return fmt.Sprintf("%d %.500s", a.status, a.body) }

// request is one request for objects of a kind.
type request struct {
	method string
	// name is that of an object, with its subresource; empty: the collection.
	name  string
	query url.Values
	// contentType and accept are empty for JSON.
	contentType, accept string
	body                []byte
}

func (k *servedKind) ask(t *testing.T, r request) answer {
	t.Helper()
	to := "/apis/" + k.version.String()
	if k.version.Group == "" {
		to = "/api/" + k.version.Version
	}
	if k.namespace != "" {
		to = path.Join(to, "namespaces", k.namespace)
	}
	to = path.Join(to, k.resource.Name, r.name)
	asked, err := http.NewRequestWithContext(t.Context(), r.method, k.host+to+"?"+r.query.Encode(),
		bytes.NewReader(r.body))
	if err != nil {
		t.Fatal(err)
	}
	const inJSON = runtime.ContentTypeJSON
	asked.Header.Set("Accept", or(r.accept, inJSON))
	if r.body != nil {
		asked.Header.Set("Content-Type", or(r.contentType, inJSON))
	}
	response, err := k.client.Do(asked)
	if err != nil {
		t.Fatalf("%s %s: %v", r.method, to, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", r.method, to, err)
	}
	return answer{response.StatusCode, response.Header, body}
}

// or is the first text, or the second where that is empty.
func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// next is another object like the example, not yet stored.
func (k *servedKind) next(t *testing.T) (name string, content map[string]any) {
	t.Helper()
	k.made++
	name = fmt.Sprintf(k.Names, k.made)
	object := &unstructured.Unstructured{}
	// Some examples are about an object in their namespace.
	text := asJSON(t, k.named(t, name))
	if k.namespace != "" {
		text = bytes.ReplaceAll(text, []byte(`"namespace":"suite"`), []byte(`"namespace":"`+k.namespace+`"`))
	}
	if err := json.Unmarshal(text, &object.Object); err != nil {
		t.Fatal(err)
	}
	object.SetGroupVersionKind(k.kind())
	object.SetNamespace(k.namespace)
	// A field that none of its strategies keeps out of the managed ones.
	object.SetAnnotations(map[string]string{"made": "by the suite"})
	return name, object.Object
}

// create stores another object like the example, with labels.
func (k *servedKind) create(t *testing.T, labels map[string]string) (name string, stored map[string]any) {
	t.Helper()
	name, content := k.next(t)
	(&unstructured.Unstructured{Object: content}).SetLabels(labels)
	got := k.ask(t, request{method: http.MethodPost, body: asJSON(t, content)})
	if got.status != http.StatusCreated {
		t.Fatalf("creating: %s", got)
	}
	return name, got.object(t)
}

func asJSON(t *testing.T, content any) []byte {
	t.Helper()
	data, err := json.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
