package client

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// No answer that it accepts holds more of an object than its metadata, or the list of them where the answer is a list.
func TestMetadata(t *testing.T) {
	var accepted []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		accepted = append(accepted, r.Method+" "+r.Header.Get("Accept"))
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Success"}`))
	}))
	defer server.Close()
	client, err := Metadata(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	secrets := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}).Namespace("default")
	if err := secrets.Delete(t.Context(), "s", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	if err := secrets.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
	_, _ = secrets.Get(t.Context(), "s", metav1.GetOptions{}) // what is answered here is none
	for i, want := range []string{"DELETE application/json;as=PartialObjectMetadata;", "DELETE application/json;as=" +
		"PartialObjectMetadataList;", "GET application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;"} {
		if i >= len(accepted) || !strings.HasPrefix(accepted[i], want) {
			t.Errorf("request %d of %q is not %s", i, accepted, want)
		}
	}
}
