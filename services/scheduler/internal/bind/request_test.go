package bind

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// sent is what a server sees of a request.
type sent struct {
	method, path, body string
	header             http.Header
}

// recorder returns a client of a server that notes requests and refuses them.
func recorder(t testing.TB, prefix string) (client kubernetes.Interface, requests *[]sent) {
	t.Helper()
	requests = &[]sent{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		*requests = append(*requests, sent{r.Method, r.RequestURI, string(body), r.Header})
		w.WriteHeader(http.StatusConflict)
	}))
	t.Cleanup(server.Close)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL + prefix, QPS: -1,
		ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeProtobuf}})
	if err != nil {
		t.Fatal(err)
	}
	return client, requests
}

// A binding is the client's own request: with and without options, and with a server behind a path.
func TestDirectBindingsAreTheClients(t *testing.T) {
	for name, row := range map[string]struct {
		prefix  string
		options metav1.CreateOptions
	}{
		"plain":                    {},
		"server behind a path":     {prefix: "/mesh"},
		"as somebody":              {options: metav1.CreateOptions{FieldManager: "somebody"}},
		"tried out":                {options: metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}},
		"with fields to be strict": {options: metav1.CreateOptions{FieldValidation: "Strict"}},
	} {
		t.Run(name, func(t *testing.T) {
			client, requests := recorder(t, row.prefix)
			binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p.q-1", UID: "u"},
				Target: corev1.ObjectReference{Kind: "Node", Name: "n"}}
			for _, pods := range []interface {
				Bind(context.Context, *corev1.Binding, metav1.CreateOptions) error
			}{client.CoreV1().Pods("ns"), Directly(client.CoreV1()).Pods("ns")} {
				if err := pods.Bind(t.Context(), binding, row.options); err == nil {
					t.Error("a refused binding is no error")
				}
			}
			if got := *requests; len(got) != 2 || got[0].body == "" || !reflect.DeepEqual(got[0], got[1]) {
				t.Errorf("requests are %+v, want two alike", got)
			}
		})
	}
}

// BenchmarkBinding is the client's part of a request for a binding, without a connection.
func BenchmarkBinding(b *testing.B) {
	client, err := kubernetes.NewForConfig(&rest.Config{Host: "https://example.com", QPS: -1,
		ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeProtobuf}, Transport: created{}})
	if err != nil {
		b.Fatal(err)
	}
	binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "u"},
		Target: corev1.ObjectReference{Kind: "Node", Name: "n"}}
	for name, pods := range map[string]interface {
		Bind(context.Context, *corev1.Binding, metav1.CreateOptions) error
	}{"client": client.CoreV1().Pods("ns"), "directly": Directly(client.CoreV1()).Pods("ns")} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := pods.Bind(b.Context(), binding, metav1.CreateOptions{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// created answers that everything was made.
type created struct{}

func (created) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusCreated, Header: http.Header{}, Body: http.NoBody}, nil
}
