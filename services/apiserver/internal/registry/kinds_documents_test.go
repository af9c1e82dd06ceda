package registry_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	restclient "k8s.io/client-go/rest"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"keelson.dev/services/apiserver/internal/servertest"
)

// TestDocumentsTellOfEveryKind wants what kubectl explain reads: a document of each version that is served, in which
// each of its kinds, and each field of it, has a description.
func TestDocumentsTellOfEveryKind(t *testing.T) {
	server := servertest.Start(t)
	defineWidgets(t, server)
	config := server.ConfigAs(servertest.Admin)
	client, err := restclient.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	documents := map[schema.GroupVersion]*spec3.OpenAPI{}
	for _, k := range servedKinds(t, server) {
		document, read := documents[k.version]
		if !read {
			document = documentOf(t, client, config.Host, k.version)
			documents[k.version] = document
		}
		of := schemaOf(t, document, k.kind())
		if of == nil {
			t.Errorf("the document of %s has no schema of %s", k.version, k.kind())
			continue
		}
		w := explained{document.Components.Schemas, map[string]bool{}, t}
		w.wantExplained(k.kind().Kind, of)
		for name := range of.Properties {
			if field := of.Properties[name]; w.descriptionOf(&field) == "" && name != "status" {
				t.Errorf("%s.%s has no description", k, name)
			}
		}
		if len(w.seen) < 3 {
			t.Errorf("%s has %d fields: the test sees too few", k, len(w.seen))
		}
	}
}

// documentOf reads the document of a version.
func documentOf(t *testing.T, client *http.Client, host string, version schema.GroupVersion) *spec3.OpenAPI {
	t.Helper()
	to := "/openapi/v3/apis/" + version.String()
	if version.Group == "" {
		to = "/openapi/v3/api/" + version.Version
	}
	asked, err := http.NewRequestWithContext(t.Context(), http.MethodGet, host+to, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(asked)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	document := &spec3.OpenAPI{}
	if err := json.NewDecoder(response.Body).Decode(document); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d, %v", to, response.StatusCode, err)
	}
	return document
}

// schemaOf is the schema of a kind.
func schemaOf(t *testing.T, document *spec3.OpenAPI, kind schema.GroupVersionKind) *spec.Schema {
	t.Helper()
	for _, s := range document.Components.Schemas {
		var kinds []schema.GroupVersionKind
		if err := s.Extensions.GetObject("x-kubernetes-group-version-kind", &kinds); err == nil &&
			slices.Contains(kinds, kind) {
			return s
		}
	}
	return nil
}

// explained are the schemas of a document, and what was seen of them.
type explained struct {
	schemas map[string]*spec.Schema
	seen    map[string]bool
	t       *testing.T
}

// wantExplained wants a schema to have a description, and all below it what kubectl explain --recursive shows: a type.
func (w *explained) wantExplained(path string, s *spec.Schema) {
	w.t.Helper()
	if w.descriptionOf(s) == "" {
		w.t.Errorf("%s has no description", path)
	}
	w.wantTyped(path, s)
}

func (w *explained) wantTyped(path string, s *spec.Schema) {
	w.t.Helper()
	if name := refOf(s); name != "" {
		if w.seen[name] {
			return
		}
		w.seen[name] = true
		to, known := w.schemas[name]
		if !known {
			w.t.Errorf("%s refers to %s, which the document has not", path, name)
			return
		}
		s = to
	}
	for name := range s.Properties {
		field := s.Properties[name]
		w.seen[path+"."+name] = true
		w.wantTyped(path+"."+name, &field)
	}
	if s.Items != nil && s.Items.Schema != nil {
		w.wantTyped(path+"[]", s.Items.Schema)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		w.wantTyped(path+"{}", s.AdditionalProperties.Schema)
	}
	_, anything := s.Extensions["x-kubernetes-preserve-unknown-fields"]
	_, either := s.Extensions["x-kubernetes-int-or-string"]
	if len(s.Type) == 0 && len(s.OneOf) == 0 && !anything && !either && s.Description == "" {
		w.t.Errorf("%s has neither a type nor a description", path)
	}
}

// descriptionOf is what is said of a schema where it stands, or of what it refers to.
func (w *explained) descriptionOf(s *spec.Schema) string {
	if s.Description != "" {
		return s.Description
	}
	if to, known := w.schemas[refOf(s)]; known {
		return to.Description
	}
	return ""
}

// refOf is the name of the schema that another one stands for; empty: it stands for itself.
func refOf(s *spec.Schema) string {
	refs := []string{s.Ref.String()}
	for i := range s.AllOf {
		refs = append(refs, s.AllOf[i].Ref.String())
	}
	for _, ref := range refs {
		if name, ok := strings.CutPrefix(ref, "#/components/schemas/"); ok {
			return name
		}
	}
	return ""
}
