package negotiated_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/services/apiserver/internal/negotiated"
	"keelson.dev/services/apiserver/internal/scheme"
)

// Whatever a request says of itself, and be it made by hand, it is answered in what its client reads.
func TestAnswers(t *testing.T) {
	known, err := scheme.New()
	if err != nil {
		t.Fatal(err)
	}
	to := negotiated.Writer{Serializer: scheme.Codecs(known), Version: metav1.SchemeGroupVersion}
	const protobuf = "application/vnd.kubernetes.protobuf"
	for accept, kind := range map[string]string{
		"":                              "application/json",
		"*/*":                           "application/json",
		"application/json":              "application/json",
		protobuf + ", application/json": protobuf,
		protobuf + ",application/json":  protobuf,
		"application/yaml":              "application/yaml",
		"application/json;pretty=1":     "application/json",
		"c/d":                           "application/json",
		"application/json;as=Table;v=v1;g=meta.k8s.io,application/json": "application/json",
	} {
		for name, r := range map[string]*http.Request{
			"made by hand": {Header: http.Header{"Accept": {accept}}},
			"as it comes": {Method: http.MethodPost, URL: &url.URL{Path: "/batch", RawQuery: "pretty=true"},
				Header: http.Header{"Accept": {accept}, "User-Agent": {"curl/8"}}},
			"without header": {URL: &url.URL{}},
		} {
			want := kind
			if r.Header == nil {
				want = "application/json"
			}
			w := httptest.NewRecorder()
			to.Error(w, r, apierrors.NewBadRequest("method: no"))
			if got := w.Header().Get("Content-Type"); w.Code != http.StatusBadRequest || got != want ||
				!strings.Contains(w.Body.String(), "method: no") {
				t.Errorf("%s, %q: %d %q %s", name, accept, w.Code, got, w.Body)
			}
			w = httptest.NewRecorder()
			to.Object(w, r, http.StatusCreated, negotiated.Status(apierrors.NewBadRequest("an object")))
			if ok := w.Code == http.StatusCreated; ok != (accept != "c/d" || r.Header == nil) || w.Body.Len() == 0 {
				t.Errorf("%s, %q: %d %s", name, accept, w.Code, w.Body)
			}
		}
	}
}
