package scenario

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/test/mesh"
)

// AggregatedAPIKind works with a kind of an API server from elsewhere as with a built-in one: kubectl explains it,
// refuses a manifest that its documents do not allow, and applies one that they do, twice. Of a server that comes to
// say more, kubectl knows more; of one that goes, nothing.
func AggregatedAPIKind(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	a := startAdapter(w)
	group := w.Namespace + ".example.dev"
	version := group + "/v1"
	a.put(version, map[string]any{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version,
		"resources": []any{map[string]any{"name": "barrels", "singularName": "barrel", "namespaced": true,
			"kind": "Barrel", "verbs": []string{"get", "create", "patch"}}}})
	a.document(group, "one", "how much it holds")
	a.enter(version)
	w.awaitOutput([]string{"barrels", version}, "api-resources")

	w.awaitOutput([]string{"KIND:       Barrel", "VERSION:    v1", "GROUP:      " + group,
		"FIELD: litres <integer>", "how much it holds"}, "explain", "barrels.spec.litres")
	for manifest, want := range map[string]string{
		"{litres: 40}":            "",
		"{litres: 40, liters: 1}": `unknown field "liters"`,
		"{litres: many}":          `got "string", expected "integer"`,
		"{}":                      `missing required field "litres"`,
	} {
		got := w.TryKubectl(fmt.Sprintf(barrelManifest, version, manifest), "apply", "--dry-run=client", "-f", "-")
		if (got.Code == 0) != (want == "") || !strings.Contains(got.Stderr, want) {
			t.Errorf("applying a Barrel with the spec %s: status %d, %s; want %q", manifest, got.Code, got.Stderr, want)
		}
	}
	for _, litres := range []string{"40", "50"} {
		w.KubectlWith(fmt.Sprintf(barrelManifest, version, "{litres: "+litres+"}"), "apply", "-f", "-")
		if got := w.Kubectl("get", "barrels."+group, "oak", "-o", "jsonpath={.spec.litres}"); got != litres {
			t.Errorf("the Barrel has %s litres, want %s", got, litres)
		}
	}

	// What a server says is fresh for a while; then who asks gets what it says now.
	a.document(group, "two", "how much went in")
	w.awaitOutput([]string{"how much went in"}, "explain", "barrels.spec.litres")
	w.Kubectl("delete", "apiservice", "v1."+group)
	got := w.TryKubectl("", "explain", "barrels."+group)
	if want := `the server doesn't have a resource type "barrels"`; !strings.Contains(got.Stderr, want) {
		t.Errorf("explaining a kind of a server that went: status %d, %s%s; want %s", got.Code, got.Stdout, got.Stderr,
			want)
	}
}

// document has the API server from elsewhere say by OpenAPI, in both versions, what a Barrel of the group is.
func (a *adapter) document(group, hash, litres string) {
	const path = "/openapi/v3/apis/"
	about := map[string]any{"title": "elsewhere", "version": "v1"}
	version := group + "/v1"
	a.put("/openapi/v2", map[string]any{"swagger": "2.0", "info": about, "definitions": barrel(group, litres),
		"paths": map[string]any{"/apis/" + version + "/namespaces/{namespace}/barrels/{name}": patching(group)}})
	a.put(path+version, map[string]any{"openapi": "3.0.0", "info": about,
		"components": map[string]any{"schemas": barrel(group, litres)},
		"paths":      map[string]any{"/apis/" + version + "/namespaces/{namespace}/barrels/{name}": patching(group)}})
	a.put("/openapi/v3", map[string]any{"paths": map[string]any{"apis/" + version: map[string]any{
		"serverRelativeURL": path + version + "?hash=" + hash}}})
}

// barrel is the schema of a Barrel of the group, by its name.
func barrel(group, litres string) map[string]any {
	text := map[string]any{"type": "string"}
	return map[string]any{"dev.example.Barrel": map[string]any{
		"type": "object", "x-kubernetes-group-version-kind": []any{kindOf(group)},
		"properties": map[string]any{
			"apiVersion": text, "kind": text, "metadata": map[string]any{"type": "object"},
			"spec": map[string]any{"type": "object", "required": []string{"litres"}, "properties": map[string]any{
				"litres": map[string]any{"type": "integer", "description": litres},
			}},
		},
	}}
}

// patching says that Barrels of the group are patched, and that the server does not check fields when it is asked to.
func patching(group string) map[string]any {
	return map[string]any{"patch": map[string]any{"x-kubernetes-group-version-kind": kindOf(group),
		"responses": map[string]any{"200": map[string]any{"description": "patched"}}}}
}

func kindOf(group string) map[string]any {
	return map[string]any{"group": group, "version": "v1", "kind": "Barrel"}
}

// keep takes an object that is created or changed by a merge patch, as it comes, and returns what it is then.
func (a *adapter) keep(r *http.Request) (any, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	path := strings.TrimPrefix(r.URL.Path, "/apis/")
	if r.Method == http.MethodPatch {
		if form := r.Header.Get("Content-Type"); form != string(types.MergePatchType) {
			return nil, fmt.Errorf("the patch is of the type %q, want %s", form, types.MergePatchType)
		}
		last, err := json.Marshal(a.objects[path])
		if err != nil {
			return nil, err
		}
		if body, err = jsonpatch.MergePatch(last, body); err != nil {
			return nil, err
		}
	}
	var object struct {
		Metadata struct{ Name string }
	}
	if err := json.Unmarshal(body, &object); err != nil {
		return nil, err
	}
	if r.Method == http.MethodPost {
		path += "/" + object.Metadata.Name
	}
	a.objects[path] = json.RawMessage(body)
	return a.objects[path], nil
}

const barrelManifest = `apiVersion: %s
kind: Barrel
metadata: {name: oak}
spec: %s
`
