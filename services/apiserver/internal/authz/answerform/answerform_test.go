package answerform

import (
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
			[]string{one + ",application/json"}, ""},
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
			if is := IsMetadata(r.Context()); is != (row.want != "") ||
				strings.Join(r.Header.Values("Accept"), ",") != accept {
				t.Errorf("%s: metadata %t, accepts %q", name, is, r.Header.Values("Accept"))
			}
		})).ServeHTTP(httptest.NewRecorder(), r)
		if !met || strings.Join(r.Header.Values("Accept"), ",") != strings.Join(row.accept, ",") {
			t.Errorf("%s: goes on %t, the request has become %q", name, met, r.Header.Values("Accept"))
		}
	}
}
