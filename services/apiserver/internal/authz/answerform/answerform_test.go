package answerform

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/endpoints/request"
)

func TestWith(t *testing.T) {
	const (
		one   = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
		list  = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
		table = "application/json;as=Table;g=meta.k8s.io;v=v1"
	)
	secrets := &request.RequestInfo{IsResourceRequest: true, APIVersion: "v1", Resource: "secrets"}
	for name, row := range map[string]struct {
		info   *request.RequestInfo
		accept []string
		want   string // what is left of accept where only metadata is answered
	}{
		"nothing":                   {secrets, nil, ""},
		"anything":                  {secrets, []string{"*/*"}, ""},
		"metadata":                  {secrets, []string{one}, one},
		"in either encoding":        {secrets, []string{one + "," + list}, one + "," + list},
		"or else, as client-go has": {secrets, []string{one + "," + list + ",application/json"}, one + "," + list},
		"or else a table":           {secrets, []string{one + "," + table}, one},
		"or else, in another line":  {secrets, []string{one, "application/json"}, one},
		"the object by preference":  {secrets, []string{"application/json," + list}, ""},
		"the object by weight":      {secrets, []string{one + ";q=0.1,application/json"}, ""},
		"another group":             {secrets, []string{"application/json;as=PartialObjectMetadata;g=example.com"}, ""},
		"something else as it":      {secrets, []string{"application/json;as=Table;x=PartialObjectMetadata"}, ""},
		"unreadable":                {secrets, []string{one + ",;;"}, ""},
		"of other objects": {&request.RequestInfo{IsResourceRequest: true, Resource: "configmaps"},
			[]string{one + ",application/json"}, one},
		"of no object": {&request.RequestInfo{Path: "/healthz"}, []string{one}, ""},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r = r.WithContext(request.WithRequestInfo(r.Context(), row.info))
		r.Header["Accept"] = row.accept
		met := false
		With(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			met = true
			accept := strings.Join(row.accept, ",")
			if row.want != "" {
				accept = row.want
			}
			if is := Of(r.Context()).Metadata; is != (row.want != "") ||
				strings.Join(r.Header.Values("Accept"), ",") != accept {
				t.Errorf("%s: metadata %t, accepts %q", name, is, r.Header.Values("Accept"))
			}
		})).ServeHTTP(httptest.NewRecorder(), r)
		if !met || strings.Join(r.Header.Values("Accept"), ",") != strings.Join(row.accept, ",") {
			t.Errorf("%s: goes on %t, the request has become %q", name, met, r.Header.Values("Accept"))
		}
	}
}

// Only a patch of finalizers and owners lets an object go and does nothing else, and whatever it is, it goes on as it
// came.
func TestReleases(t *testing.T) {
	const whole = `{"metadata":{"uid":"u","resourceVersion":"7","finalizers":["a/b"],"ownerReferences":null}}`
	for name, row := range map[string]struct {
		method, contentType, body string
		want                      bool
	}{
		"finalizers and owners":   {http.MethodPatch, "application/merge-patch+json", whole, true},
		"none of them":            {http.MethodPatch, "application/merge-patch+json", `{}`, true},
		"a label":                 {http.MethodPatch, "application/merge-patch+json", `{"metadata":{"labels":{"a":"b"}}}`, false},
		"data":                    {http.MethodPatch, "application/merge-patch+json", `{"data":{"q":"?"}}`, false},
		"a template":              {http.MethodPatch, "application/merge-patch+json", `{"metadata":{},"spec":{}}`, false},
		"a field of a wrong type": {http.MethodPatch, "application/merge-patch+json", `{"metadata":5}`, false},
		"finalizers of a wrong type": {http.MethodPatch, "application/merge-patch+json",
			`{"metadata":{"finalizers":"x"}}`, false},
		"two patches":     {http.MethodPatch, "application/merge-patch+json", whole + `{"data":{}}`, false},
		"no patch":        {http.MethodPatch, "application/merge-patch+json", `copy`, false},
		"a JSON patch":    {http.MethodPatch, "application/json-patch+json", whole, false},
		"a strategic one": {http.MethodPatch, "application/strategic-merge-patch+json", whole, false},
		"an update":       {http.MethodPut, "application/merge-patch+json", whole, false},
		"a long one": {http.MethodPatch, "application/merge-patch+json", whole + strings.Repeat(" ", maxRelease),
			false},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(row.method, "/", strings.NewReader(row.body))
			r.Header.Set("Content-Type", row.contentType)
			if got := releases(r); got != row.want {
				t.Errorf("%v, want %v", got, row.want)
			}
			if left, err := io.ReadAll(r.Body); err != nil || string(left) != row.body {
				t.Errorf("the body has become %q, %v", left, err)
			}
		})
	}
}
