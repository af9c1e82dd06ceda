package servertest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/client-go/openapi3"
	restclient "k8s.io/client-go/rest"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/kube-openapi/pkg/handler"
	"k8s.io/kube-openapi/pkg/handler3"
	openapiproto "k8s.io/kube-openapi/pkg/util/proto"

	"keelson.dev/services/apiserver/internal/servertest"
)

const (
	flunderDocument = "/openapi/v3/apis/wardle.example.com/v1alpha1"
	flunderModel    = "com.example.wardle.v1alpha1.Flunder"
	objectMeta      = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
)

func (e *extension) answerDocuments(w http.ResponseWriter, r *http.Request) {
	if documents := e.documents.Load(); documents != nil {
		(*documents).ServeHTTP(w, r)
		return
	}
	http.NotFound(w, r)
}

// publish makes the extension say by OpenAPI, with the library that API servers have, that flunders have the field.
// Its ObjectMeta is another one than the apiserver's.
func (e *extension) publish(t *testing.T, field string) {
	t.Helper()
	served := apiextensionsv1.CustomResourceDefinitionVersion{Name: "v1alpha1", Served: true, Storage: true,
		Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
			Type: "object", Description: "A Flunder is of no use.",
			Properties: map[string]apiextensionsv1.JSONSchemaProps{
				field: {Type: "integer", Description: "How much of no use it is."}}}}}
	definition := &apiextensionsv1.CustomResourceDefinition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{
		Group: "wardle.example.com", Scope: apiextensionsv1.NamespaceScoped,
		Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "flunders", Singular: "flunder", Kind: "Flunder",
			ListKind: "FlunderList"},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{served}}}
	v3, err := builder.BuildOpenAPIV3(definition, "v1alpha1", builder.Options{})
	if err != nil {
		t.Fatal(err)
	}
	v2, err := builder.BuildOpenAPIV2(definition, "v1alpha1", builder.Options{V2: true})
	if err != nil {
		t.Fatal(err)
	}
	meta := v2.Definitions[objectMeta]
	meta.Description = "Another one."
	v2.Definitions[objectMeta] = meta
	paths := mux.NewPathRecorderMux("extension")
	of := handler3.NewOpenAPIService()
	of.UpdateGroupVersion("apis/wardle.example.com/v1alpha1", v3)
	if err := of.RegisterOpenAPIV3VersionedService("/openapi/v3", paths); err != nil {
		t.Fatal(err)
	}
	handler.NewOpenAPIService(v2).RegisterOpenAPIVersionedService("/openapi/v2", paths)
	e.answer(paths)
}

// answer makes the extension answer so what it is asked of OpenAPI.
func (e *extension) answer(documents http.Handler) { e.documents.Store(&documents) }

// Clients find the kinds of other servers in the documents of both forms, as long as the APIService is there, and those
// of the apiserver's own kinds are as they were.
func TestAggregatedOpenAPI(t *testing.T) {
	a := startAggregated(t)
	_, apps := a.send(t, "bob", "/openapi/v3/apis/apps/v1", nil)
	if code, body := a.send(t, "bob", flunderDocument, nil); code != http.StatusNotFound {
		t.Errorf("before it has a document: status %d, %s", code, body)
	}
	a.publish(t, "size")
	a.awaitDocuments(t, "size")
	t.Run("V3", func(t *testing.T) { testAggregatedV3(t, a) })
	t.Run("V2", func(t *testing.T) { testAggregatedV2(t, a) })

	a.publish(t, "weight")
	a.update(t, func(s *apiregistration.APIService) { s.Spec.VersionPriority++ })
	a.awaitDocuments(t, "weight")
	service := a.services.ApiregistrationV1().APIServices()
	if err := service.Delete(t.Context(), "v1alpha1.wardle.example.com", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	servertest.Eventually(t, "documents without flunders", func(context.Context) string {
		for _, path := range []string{"/openapi/v2", "/openapi/v3"} {
			if code, body := a.send(t, "bob", path, nil); code != http.StatusOK || strings.Contains(body, "wardle") {
				return fmt.Sprintf("%s: status %d", path, code)
			}
		}
		if code, _ := a.send(t, "bob", flunderDocument, nil); code != http.StatusNotFound {
			return fmt.Sprintf("the flunders: status %d, want 404", code)
		}
		return ""
	})
	if _, now := a.send(t, "bob", "/openapi/v3/apis/apps/v1", nil); now != apps || len(apps) < 1000 {
		t.Error("the document of apps/v1 is another one")
	}
}

// awaitDocuments waits until all documents tell that flunders have the field.
func (a *aggregated) awaitDocuments(t *testing.T, field string) {
	t.Helper()
	servertest.Eventually(t, "documents with the field "+field, func(context.Context) string {
		_, index := a.send(t, "bob", "/openapi/v3", nil)
		if at := indexed(index); !strings.HasPrefix(at, flunderDocument+"?hash=") {
			return "the index leads to " + at
		} else if code, body := a.send(t, "bob", at, nil); code != http.StatusOK || !strings.Contains(body, field) {
			return fmt.Sprintf("%s: status %d, %s", at, code, body)
		}
		if code, body := a.send(t, "bob", "/openapi/v2", nil); code != http.StatusOK ||
			!strings.Contains(body, `"`+field+`":{"description":"How much of no use it is."`) {
			return fmt.Sprintf("/openapi/v2: status %d, with flunders: %v", code, strings.Contains(body, flunderModel))
		}
		return ""
	})
}

// indexed is where the index says that the document of the flunders is.
func indexed(index string) string {
	var read handler3.OpenAPIV3Discovery
	_ = json.Unmarshal([]byte(index), &read)
	return read.Paths["apis/wardle.example.com/v1alpha1"].ServerRelativeURL
}

// testAggregatedV3: what client-go reads, by the hash, in JSON and in protobuf.
func testAggregatedV3(t *testing.T, a *aggregated) {
	version := schema.GroupVersion{Group: "wardle.example.com", Version: "v1alpha1"}
	client := a.As(t, "bob").Discovery().OpenAPIV3()
	spec, err := openapi3.NewRoot(client).GVSpec(version)
	if err != nil {
		t.Fatal(err)
	}
	if model := spec.Components.Schemas[flunderModel]; model == nil || model.Description != "A Flunder is of no use." {
		t.Errorf("the model of flunders is %v", model)
	}
	paths, err := client.Paths()
	if err != nil {
		t.Fatal(err)
	}
	const protobuf = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"
	if body, err := paths["apis/wardle.example.com/v1alpha1"].Schema(protobuf); err != nil ||
		!strings.Contains(string(body), flunderModel) || strings.HasPrefix(string(body), "{") {
		t.Errorf("in protobuf: %.100s, %v", body, err)
	}
	for _, path := range []string{"/openapi/v3", flunderDocument} {
		etag := a.etag(t, path)
		code, body := a.send(t, "bob", path, map[string]string{"If-None-Match": etag})
		if code != http.StatusNotModified {
			t.Errorf("%s with the ETag %s: status %d, %.100s", path, etag, code, body)
		}
	}
	old := flunderDocument + "?hash=0"
	if code, body := a.send(t, "bob", old, nil); code != http.StatusOK || !strings.Contains(body, flunderModel) {
		t.Errorf("by an old hash: status %d, %.100s", code, body)
	}
	if code, _ := a.send(t, "bob", "/openapi/v3/apis/wardle.example.com/v2", nil); code != http.StatusNotFound {
		t.Errorf("another version: status %d, want 404", code)
	}
	if code, _ := a.send(t, "bob", flunderDocument, map[string]string{"Via": "1.1 keelson-aggregation"}); code !=
		http.StatusLoopDetected {
		t.Errorf("a request that comes back: status %d, want 508", code)
	}
}

func (a *aggregated) etag(t *testing.T, path string) string {
	t.Helper()
	client, err := restclient.HTTPClientFor(a.ConfigAs("bob"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+a.Address()+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	return response.Header.Get("Etag")
}

// testAggregatedV2: what kubectl reads, in which each definition is found by its kind.
func testAggregatedV2(t *testing.T, a *aggregated) {
	document, err := a.As(t, "bob").Discovery().OpenAPISchema()
	if err != nil {
		t.Fatal(err)
	}
	models, err := openapiproto.NewOpenAPIData(document)
	if err != nil {
		t.Fatal(err)
	}
	if model := models.LookupModel(flunderModel); model == nil || model.GetDescription() != "A Flunder is of no use." {
		t.Errorf("the model of flunders is %v", model)
	}
	if model := models.LookupModel(objectMeta); model == nil || model.GetDescription() == "Another one." {
		t.Error("the apiserver's ObjectMeta is not its own")
	}
	if model := models.LookupModel(objectMeta + "_v2"); model == nil || model.GetDescription() != "Another one." {
		t.Error("the extension's ObjectMeta is not there under another name")
	}
	if names := modelsOf(document, "Deployment"); len(names) != 1 || names[0] != "io.k8s.api.apps.v1.Deployment" {
		t.Errorf("Deployments are %v", names)
	}
}

// modelsOf are the names of the definitions that are of the kind.
func modelsOf(document *openapi_v2.Document, kind string) []string {
	var names []string
	for _, property := range document.GetDefinitions().GetAdditionalProperties() {
		for _, extension := range property.GetValue().GetVendorExtension() {
			if extension.GetName() == "x-kubernetes-group-version-kind" &&
				strings.Contains(extension.GetValue().GetYaml(), "kind: "+kind+"\n") {
				names = append(names, property.GetName())
			}
		}
	}
	return names
}

// A server that hangs, or does not say what it has, does not keep clients from the documents of others.
func TestHostileAggregatedOpenAPI(t *testing.T) {
	a := startAggregated(t)
	for name, documents := range map[string]http.HandlerFunc{
		"hangs": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"garbage": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"swagger":"2.0","paths":7}`))
		},
		"endless": func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				_, _ = w.Write(make([]byte, 1<<20))
			}
		},
	} {
		var asked atomic.Bool
		a.answer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked.Store(asked.Load() || r.URL.Path == "/openapi/v2")
			documents(w, r)
		}))
		// As another APIService it is asked at once.
		a.update(t, func(s *apiregistration.APIService) { s.Spec.VersionPriority++ })
		servertest.Eventually(t, "the server that "+name+" to be asked", func(context.Context) string {
			for _, path := range []string{"/openapi/v2", "/openapi/v3", "/openapi/v3/apis/apps/v1"} {
				if code, body := a.send(t, "bob", path, nil); code != http.StatusOK || len(body) < 1000 ||
					strings.Contains(body, "wardle") {
					t.Fatalf("%s: %s: status %d", name, path, code)
				}
			}
			if !asked.Load() {
				return "it was not"
			}
			return ""
		})
		if code, body := a.send(t, "bob", flunderDocument, nil); code != http.StatusServiceUnavailable ||
			!strings.Contains(body, "reading the OpenAPI document of the APIService v1alpha1.wardle.example.com: ") {
			t.Errorf("%s: status %d, %.200s", name, code, body)
		}
	}
}
