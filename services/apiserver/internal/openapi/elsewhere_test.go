package openapi

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

func parsed(t *testing.T, text string) *spec.Swagger {
	t.Helper()
	document := &spec.Swagger{}
	if err := document.UnmarshalJSON([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return document
}

func written(t *testing.T, document *spec.Swagger) string {
	t.Helper()
	body, err := document.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// The documents of others are added to the apiserver's: the same definition once, with the kinds of both, another one
// of the same name under another name, and no path of the apiserver's twice. The documents themselves stay.
func TestWithOthers(t *testing.T) {
	const own = `{"swagger":"2.0","paths":{"/apis/apps/v1/":{}},"definitions":{` +
		`"Options":{"type":"object","x-kubernetes-group-version-kind":[{"group":"apps","kind":"Options","version":"v1"}]},` +
		`"Plain":{"type":"object"},"Meta":{"type":"object"}}}`
	first := `{"swagger":"2.0","paths":{"/apis/a/v1/":{"get":{"responses":{"200":{"schema":` +
		`{"$ref":"#/definitions/Meta"}}}}},"/apis/apps/v1/":{"parameters":[]}},"definitions":{` +
		`"Options":{"type":"object","x-kubernetes-group-version-kind":[{"group":"a","kind":"Options","version":"v1"}]},` +
		`"Plain":{"type":"object","x-kubernetes-group-version-kind":[{"group":"a","kind":"Plain","version":"v1"}]},` +
		`"Meta":{"type":"string"}}}`
	odd := `{"swagger":"2.0","paths":{"/apis/c/v1/":{}},"definitions":{` +
		`"Options":{"type":"object","x-kubernetes-group-version-kind":"c"}}}`
	always := parsed(t, own)
	others := []*spec.Swagger{
		parsed(t, first), parsed(t, odd), parsed(t, strings.ReplaceAll(first, "/apis/a/", "/apis/b/")),
	}
	got := withOthers(always, others)
	if now := written(t, always); now != written(t, parsed(t, own)) {
		t.Errorf("the apiserver's is now %s", now)
	}
	if now := written(t, others[0]); now != written(t, parsed(t, first)) {
		t.Errorf("the other is now %s", now)
	}
	body := written(t, got)
	for text, want := range map[string]int{
		`"/apis/a/v1/":`: 1, `"/apis/b/v1/":`: 1, `"/apis/c/v1/":`: 0, `"/apis/apps/v1/":{}`: 1,
		`"Options":{`: 1, `{"group":"apps","kind":"Options","version":"v1"}`: 1,
		`{"group":"a","kind":"Options","version":"v1"}`: 1, `{"group":"a","kind":"Plain","version":"v1"}`: 1,
		`"Meta":{"type":"object"}`: 1, `"Meta_v2":{"type":"string"}`: 1, `"Meta_v3"`: 0,
		`"#/definitions/Meta_v2"`: 2, `"#/definitions/Meta"`: 0,
	} {
		if n := strings.Count(body, text); n != want {
			t.Errorf("%s is there %d times, want %d: %s", text, n, want, body)
		}
	}
}

func TestIndexWith(t *testing.T) {
	body, err := indexWith([]byte(`{"paths":{"api/v1":{"serverRelativeURL":"/one"}}}`),
		map[schema.GroupVersion]string{{Group: "a", Version: "v1"}: "/two"})
	var got any
	if err != nil || json.Unmarshal(body, &got) != nil ||
		string(body) != `{"paths":{"api/v1":{"serverRelativeURL":"/one"},"apis/a/v1":{"serverRelativeURL":"/two"}}}` {
		t.Errorf("%s, %v", body, err)
	}
	if _, err := indexWith(nil, nil); err == nil {
		t.Error("an index that is not there was read")
	}
}
