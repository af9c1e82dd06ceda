package requestbatch

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/kit/batch"
	"keelson.dev/services/apiserver/internal/negotiated"
	"keelson.dev/services/apiserver/internal/scheme"
)

// written is a response that a test reads; its deadlines are those of a connection that has sent everything.
type written struct{ *httptest.ResponseRecorder }

func (written) SetReadDeadline(time.Time) error { return nil }

// FuzzBatch: whatever a batch holds, it is refused as one, or each of its requests is answered in its place, and
// nothing breaks off.
func FuzzBatch(f *testing.F) {
	known, err := scheme.New()
	if err != nil {
		f.Fatal(err)
	}
	to := negotiated.Writer{Serializer: scheme.Codecs(known), Version: corev1.SchemeGroupVersion}
	h := over(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			to.Error(w, r, apierrors.NewNotFound(corev1.Resource("configmaps"), r.URL.Path))
			return
		}
		to.Object(w, r, http.StatusOK, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: r.URL.Path}})
	}, "ann")
	for _, seed := range seeds() {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		w := written{httptest.NewRecorder()}
		r := httptest.NewRequest(http.MethodPost, batch.Path, bytes.NewReader(body))
		r.Header.Set("Content-Type", batch.ContentType)
		h.ServeHTTP(w, r)
		requests, err := batch.ReadRequests(body)
		if err != nil {
			if w.Code != http.StatusBadRequest {
				t.Fatalf("%v: answered with %d", err, w.Code)
			}
			return
		}
		answered := map[int]bool{}
		for from := bufio.NewReader(w.Body); ; {
			a, err := batch.ReadAnswer(from)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if answered[a.Item] || a.Item >= len(requests) || strings.Contains(string(a.Body), "broke off") {
				t.Errorf("%+v is answered with %d %s", requests[min(a.Item, len(requests)-1)], a.Status, a.Body)
			}
			answered[a.Item] = true
		}
		if len(answered) != len(requests) {
			t.Errorf("%d of %d requests are answered", len(answered), len(requests))
		}
	})
}

// seeds are batches as clients send them, and what none should send.
func seeds() [][]byte {
	const ns = "/api/v1/namespaces/default/"
	var all [][]byte
	for _, accept := range accepts {
		var body []byte
		for _, r := range []batch.Request{
			{Method: "POST", Target: ns + "pods/p/binding", ContentType: "application/vnd.kubernetes.protobuf",
				Body: []byte("k8s\x00\n\x0d\n\x02v1\x12\x07Binding")},
			{Method: "PATCH", Target: ns + "pods/p/status?fieldManager=keelson-scheduler",
				ContentType: "application/strategic-merge-patch+json", Body: []byte(`{"status":{}}`)},
			{Method: "PUT", Target: ns + "configmaps/c", ContentType: "application/json", Body: []byte(`{}`)},
			{Method: "DELETE", Target: ns + "configmaps/c?dryRun=All"},
			{Method: "DELETE", Target: ns + "configmaps"},
			{Method: "GET", Target: ns + "configmaps/c"},
			{Method: "POST", Target: ns + "pods/p/exec?command=sh"},
			{Method: "POST", Target: "http://elsewhere/api/v1/pods"},
			{Method: "POST", Target: "%zz"},
			{},
		} {
			r.Accept = accept
			body = batch.AppendRequest(body, r)
			all = append(all, batch.AppendRequest(nil, r))
		}
		all = append(all, body, body[:len(body)/2])
	}
	return all
}
