package leanclient

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

// reply is one answer of the server.
type reply struct {
	status int
	object runtime.Object // in protobuf
	text   string         // instead of an object
	after  string         // header Retry-After
}

// server answers requests in turn, and keeps what they were.
type server struct {
	replies  []reply
	requests []string
	bodies   [][]byte
	headers  []http.Header
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.requests = append(s.requests, r.Method+" "+r.URL.RequestURI())
	s.bodies, s.headers = append(s.bodies, body), append(s.headers, r.Header)
	answer := s.replies[min(len(s.requests), len(s.replies))-1]
	if answer.after != "" {
		w.Header().Set("Retry-After", answer.after)
	}
	w.WriteHeader(answer.status)
	if answer.object == nil {
		fmt.Fprint(w, answer.text)
		return
	}
	encoded, err := runtime.Encode(encoder, answer.object)
	if err != nil {
		panic(err)
	}
	_, _ = w.Write(encoded)
}

func start(t *testing.T, replies ...reply) (*server, corev1client.PodInterface) {
	t.Helper()
	s := &server{replies: replies}
	listening := httptest.NewServer(s)
	t.Cleanup(listening.Close)
	c, err := New(&rest.Config{Host: listening.URL + "/prefix", UserAgent: "tester"})
	if err != nil {
		t.Fatal(err)
	}
	return s, c.Pods("default")
}

// metadata is what a server answers that was asked for no more.
func metadata(version string) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "web-x", Namespace: "default", UID: "u",
		ResourceVersion: version, Labels: map[string]string{"app": "web"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "tester"}}}}
	m.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata"))
	return m
}

func status(err *apierrors.StatusError) *metav1.Status {
	s := err.Status()
	s.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Status"})
	return &s
}

func prototype() *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "web-", Namespace: "default"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "web:1"}}}}
}

// checkPod checks that a Pod holds only what identifies it and its version.
func checkPod(t *testing.T, pod *corev1.Pod, err error, version string) {
	t.Helper()
	want := metav1.ObjectMeta{Name: "web-x", Namespace: "default", UID: "u", ResourceVersion: version}
	if err != nil || fmt.Sprint(pod.ObjectMeta) != fmt.Sprint(want) {
		t.Fatalf("%+v, %v", pod, err)
	}
}

func TestCreate(t *testing.T) {
	s, pods := start(t, reply{status: 201, object: metadata("7")})
	sent := prototype()
	made, err := pods.Create(t.Context(), sent, metav1.CreateOptions{FieldManager: "replica set"})
	checkPod(t, made, err, "7")
	if s.requests[0] != "POST /prefix/api/v1/namespaces/default/pods?fieldManager=replica+set" {
		t.Errorf("request %s", s.requests[0])
	}
	h := s.headers[0]
	if h.Get("Content-Type") != runtime.ContentTypeProtobuf || h.Get("User-Agent") != "tester" ||
		!strings.HasPrefix(h.Get("Accept"), runtime.ContentTypeProtobuf+";as=PartialObjectMetadata") {
		t.Errorf("headers %v", h)
	}
	got, kind, err := decoder.Decode(s.bodies[0], nil, nil)
	if err != nil || kind.Kind != "Pod" || got.(*corev1.Pod).Spec.Containers[0].Image != "web:1" {
		t.Errorf("%v %+v, %v was sent", kind, got, err)
	}
	if sent.Kind != "" {
		t.Error("the Pod was changed, which others share")
	}
}

// A server that answers with the whole Pod is understood, too.
func TestWholeAnswer(t *testing.T) {
	whole := prototype()
	whole.ObjectMeta = metadata("8").ObjectMeta
	whole.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	_, pods := start(t, reply{status: 201, object: whole},
		reply{status: 201, text: `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web-x","namespace":"default",` +
			`"uid":"u","resourceVersion":"9"}}`})
	for _, version := range []string{"8", "9"} {
		made, err := pods.Create(t.Context(), prototype(), metav1.CreateOptions{})
		checkPod(t, made, err, version)
	}
}

func TestPatchAndDelete(t *testing.T) {
	s, pods := start(t, reply{status: 200, object: metadata("8")})
	patched, err := pods.Patch(t.Context(), "web-x", types.StrategicMergePatchType, []byte("{}"),
		metav1.PatchOptions{FieldManager: "job"})
	checkPod(t, patched, err, "8")
	uid, version := types.UID("u"), "8"
	if err := pods.Delete(t.Context(), "web-x", metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}}); err != nil {
		t.Fatal(err)
	}
	want := []string{"PATCH /prefix/api/v1/namespaces/default/pods/web-x?fieldManager=job",
		"DELETE /prefix/api/v1/namespaces/default/pods/web-x"}
	if fmt.Sprint(s.requests) != fmt.Sprint(want) {
		t.Errorf("requests %q", s.requests)
	}
	if string(s.bodies[0]) != "{}" || s.headers[0].Get("Content-Type") != string(types.StrategicMergePatchType) {
		t.Errorf("%s of type %s was sent", s.bodies[0], s.headers[0].Get("Content-Type"))
	}
	options, _, err := decoder.Decode(s.bodies[1], nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if o := options.(*metav1.DeleteOptions); o.GracePeriodSeconds != nil || o.Preconditions == nil ||
		*o.Preconditions.UID != "u" || *o.Preconditions.ResourceVersion != "8" {
		t.Errorf("options %+v", o) // SAF-158
	}
}

// A name that is none never makes a request: one without a name would be about all Pods.
func TestNames(t *testing.T) {
	s, pods := start(t, reply{status: 200, object: metadata("1")})
	for _, name := range []string{"", ".", "..", "a/b", "a%b"} {
		_, err := pods.Patch(t.Context(), name, types.MergePatchType, nil, metav1.PatchOptions{})
		if gone := pods.Delete(t.Context(), name, metav1.DeleteOptions{}); err == nil || gone == nil {
			t.Errorf("%q is taken: %v, %v", name, err, gone)
		}
	}
	c, err := New(&rest.Config{Host: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	for _, namespace := range []string{"", "a/b"} {
		if err := c.Pods(namespace).Delete(t.Context(), "web", metav1.DeleteOptions{}); err == nil ||
			!strings.Contains(err.Error(), "namespace") {
			t.Errorf("namespace %q: %v", namespace, err)
		}
	}
	if len(s.requests) > 0 {
		t.Errorf("requests %q", s.requests)
	}
}

// What the server refuses is the error that client-go makes of it.
func TestErrors(t *testing.T) {
	gone := apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "web-x")
	for name, c := range map[string]struct {
		reply reply
		is    func(error) bool
	}{
		"a status": {reply{status: 404, object: status(gone)}, apierrors.IsNotFound},
		"a conflict in JSON": {reply{status: 409, text: `{"kind":"Status","apiVersion":"v1","status":"Failure",` +
			`"reason":"AlreadyExists","code":409}`}, apierrors.IsAlreadyExists},
		"quota": {reply{status: 403, object: status(apierrors.NewForbidden(schema.GroupResource{Resource: "pods"},
			"web-x", errors.New("exceeded quota")))}, apierrors.IsForbidden},
		"text":                {reply{status: 500, text: "broken"}, apierrors.IsInternalError},
		"no answer of a Pod":  {reply{status: 200, text: "hello"}, func(err error) bool { return err != nil }},
		"a status of success": {reply{status: 500, text: "{}"}, apierrors.IsInternalError},
		"too many requests":   {reply{status: 429, after: "0", text: "later"}, apierrors.IsTooManyRequests},
	} {
		t.Run(name, func(t *testing.T) {
			_, pods := start(t, c.reply)
			if _, err := pods.Create(t.Context(), prototype(), metav1.CreateOptions{}); !c.is(err) {
				t.Errorf("%v", err)
			}
		})
	}
	_, pods := start(t, reply{status: 404, object: status(gone)})
	if err := pods.Delete(t.Context(), "web-x", metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("deleting: %v", err)
	}
}

// A request that the server asks to make later is made again, with its body, ten times.
func TestLater(t *testing.T) {
	later := reply{status: 429, after: "0"}
	s, pods := start(t, later, reply{status: 503, after: "0"}, reply{status: 201, object: metadata("7")})
	made, err := pods.Create(t.Context(), prototype(), metav1.CreateOptions{})
	checkPod(t, made, err, "7")
	if len(s.requests) != 3 || len(s.bodies[2]) == 0 {
		t.Errorf("%d requests, the last with %d bytes", len(s.requests), len(s.bodies[len(s.bodies)-1]))
	}
	s, pods = start(t, later)
	if _, err := pods.Create(t.Context(), prototype(), metav1.CreateOptions{}); err == nil || len(s.requests) != 11 {
		t.Errorf("%d requests, %v", len(s.requests), err)
	}
	// Not asked for: an answer may have been lost behind the failure.
	s, pods = start(t, reply{status: 503})
	if _, err := pods.Create(t.Context(), prototype(), metav1.CreateOptions{}); err == nil || len(s.requests) != 1 {
		t.Errorf("%d requests, %v", len(s.requests), err)
	}
}
