package eventbatch

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apiserver/pkg/endpoints/request"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// FuzzEvents: whatever is posted where Events are listed, and however it is asked for, there is an answer, nothing
// breaks off, and what is no batch goes on.
func FuzzEvents(f *testing.F) {
	w := writerTo(f, func(context.Context, *corev1.Event) error { return nil })
	w.MaxBytes = 3 << 20
	var batches Batches
	if err := batches.Open(w.Config); err != nil {
		f.Fatal(err)
	}
	h := batches.Over(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTeapot)
	}))
	addSeeds(f)
	f.Fuzz(func(t *testing.T, body []byte, contentType, accept, query string) {
		target, err := url.ParseRequestURI(path + "?" + query)
		if err != nil || strings.ContainsFunc(contentType+accept, func(c rune) bool { return c < ' ' || c == 0x7f }) {
			return // none that a server would hand on
		}
		r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(string(body)))
		r.URL = target
		r.Header.Set("Content-Type", contentType)
		r.Header.Set("Accept", accept)
		r.Header.Set("User-Agent", "fuzz/v1")
		info := &request.RequestInfo{IsResourceRequest: true, Path: path, Verb: "create", APIPrefix: "api",
			APIVersion: "v1", Resource: "events", Parts: []string{"events"}}
		got := httptest.NewRecorder()
		h.ServeHTTP(got, r.WithContext(request.WithRequestInfo(r.Context(), info)))
		if strings.Contains(got.Body.String(), "broke off") || got.Code >= 500 ||
			got.Code != http.StatusTeapot && got.Body.Len() == 0 {
			t.Errorf("%d %s", got.Code, got.Body)
		}
	})
}

// addSeeds adds batches as client-go and kubectl send them, in each form that there is, and what is none.
func addSeeds(f *testing.F) {
	const kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io," +
		"application/json"
	list := &corev1.EventList{Items: events(3)}
	list.Kind, list.APIVersion = "EventList", "v1"
	list.Items[1].Name, list.Items[1].GenerateName = "", "e-"
	asJSON, err := json.Marshal(list)
	if err != nil {
		f.Fatal(err)
	}
	asYAML, err := yaml.Marshal(list)
	if err != nil {
		f.Fatal(err)
	}
	asProtobuf, err := runtime.Encode(protobuf.NewSerializer(clientscheme.Scheme, clientscheme.Scheme), list)
	if err != nil {
		f.Fatal(err)
	}
	const binary = runtime.ContentTypeProtobuf
	f.Add(asProtobuf, binary, binary+",application/json", "")
	f.Add(asProtobuf[:len(asProtobuf)/2], binary, binary+",application/json", "fieldManager=m")
	f.Add(asJSON, "application/json", "application/json", "dryRun=All&fieldValidation=Strict")
	f.Add(asJSON, "", "*/*", "pretty=true")
	f.Add(asJSON[:len(asJSON)/2], "application/json", kubectl, "fieldValidation=Warn")
	f.Add(asYAML, "application/yaml", "application/yaml", "fieldValidation=Never")
	f.Add([]byte(`{"kind":"EventList","apiVersion":"v1","items":[{"metadata":{"no":1}}],"no":[{}]}`),
		"application/json", kubectl, "fieldManager=%00")
	f.Add([]byte(`{"kind":"Event","apiVersion":"v1"}`), "application/json", "c/d", "dryRun=some")
	f.Add([]byte(`{"kind":"EventList","apiVersion":"events.k8s.io/v1"}`), "text/plain", "", "%zz")
}
