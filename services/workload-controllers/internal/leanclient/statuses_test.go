package leanclient

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// over returns a client that writes statuses to the server, and all else into an API in memory.
func over(t *testing.T, s *server, objects ...client.Object) client.Client {
	t.Helper()
	listening := httptest.NewServer(s)
	t.Cleanup(listening.Close)
	lean, err := New(&rest.Config{Host: listening.URL, UserAgent: "tester"})
	if err != nil {
		t.Fatal(err)
	}
	builder := fake.NewClientBuilder().WithObjects(objects...).WithStatusSubresource(objects...)
	return lean.WithStatuses(builder.Build(), "me")
}

// filled gives a workload of any kind a name and something in its status.
func filled(of reflect.Type) client.Object {
	object := reflect.New(of.Elem()).Interface().(client.Object)
	object.SetNamespace("default")
	object.SetName("web-x")
	object.SetUID("u")
	object.SetResourceVersion("6")
	object.SetLabels(map[string]string{"app": "web"})
	status := reflect.ValueOf(object).Elem().FieldByName("Status")
	for _, name := range []string{"Replicas", "CurrentNumberScheduled", "Succeeded"} {
		if field := status.FieldByName(name); field.IsValid() {
			field.SetInt(7)
		}
	}
	return object
}

// What is sent is the whole object, so that the server finds what is to be written and the version that was decided
// on.
func TestStatusOfWorkloads(t *testing.T) {
	codec := protobuf.NewSerializer(clientgoscheme.Scheme, clientgoscheme.Scheme)
	for of, to := range targets {
		s := &server{replies: []reply{{status: 200, object: metadata("9")}}}
		object := filled(of)
		want := object.DeepCopyObject()
		if err := over(t, s).Status().Update(t.Context(), object); err != nil {
			t.Fatalf("%s: %v", of, err)
		}
		path := "PUT /apis/" + to.resource.Group + "/v1/namespaces/default/" + to.resource.Resource +
			"/web-x/status?fieldManager=me"
		if len(s.requests) != 1 || s.requests[0] != path {
			t.Errorf("%s: requests %v, want %s", of, s.requests, path)
		}
		if h := s.headers[0]; h.Get("Content-Type") != runtime.ContentTypeProtobuf || h.Get("User-Agent") != "tester" ||
			!strings.Contains(h.Get("Accept"), "PartialObjectMetadata") {
			t.Errorf("%s: headers %v", of, h)
		}
		sent, kind, err := codec.Decode(bytes.Clone(s.bodies[0]), nil, nil)
		if err != nil || kind.Kind != of.Elem().Name() {
			t.Fatalf("%s: a %v is sent, %v", of, kind, err)
		}
		want.GetObjectKind().SetGroupVersionKind(*kind)
		if !reflect.DeepEqual(sent, want) {
			t.Errorf("%s: sent %+v, want %+v", of, sent, want)
		}
		if object.GetResourceVersion() != "9" || object.GetUID() != "u" {
			t.Errorf("%s: the version is %s and the UID %s", of, object.GetResourceVersion(), object.GetUID())
		}
	}
	if len(targets) != 5 {
		t.Errorf("statuses of %d kinds", len(targets))
	}
}

// A refusal is the error that it is, and changes nothing about the object.
func TestStatusIsRefused(t *testing.T) {
	sets := schema.GroupResource{Group: "apps", Resource: "replicasets"}
	for name, row := range map[string]struct {
		reply reply
		is    func(error) bool
	}{
		"a conflict": {reply{status: http.StatusConflict,
			object: status(apierrors.NewConflict(sets, "web-x", nil))}, apierrors.IsConflict},
		"it is gone": {reply{status: http.StatusNotFound, object: status(apierrors.NewNotFound(sets, "web-x"))},
			apierrors.IsNotFound},
		"text": {reply{status: http.StatusForbidden, text: "no"}, apierrors.IsForbidden},
	} {
		set := filled(reflect.TypeFor[*appsv1.ReplicaSet]())
		err := over(t, &server{replies: []reply{row.reply}}).Status().Update(t.Context(), set)
		if !row.is(err) || set.GetResourceVersion() != "6" {
			t.Errorf("%s: %v, and the version is %s", name, err, set.GetResourceVersion())
		}
	}
	s := &server{replies: []reply{{status: 200, object: metadata("9")}}}
	for name, want := range map[string]string{"": "the name of a ReplicaSet may not be empty",
		"a/b": `invalid name "a/b" of a ReplicaSet`} {
		set := filled(reflect.TypeFor[*appsv1.ReplicaSet]())
		set.SetName(name)
		if err := over(t, s).Status().Update(t.Context(), set); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("name %q: %v, want %s", name, err, want)
		}
	}
	if len(s.requests) > 0 {
		t.Errorf("requests %v", s.requests)
	}
}

// Other kinds, other writes and options that are not known here go the usual way.
func TestOtherWritesGoTheUsualWay(t *testing.T) {
	scaler := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "s"}}
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "r"}}
	s := &server{replies: []reply{{status: 500, text: "nobody asks here"}}}
	c := over(t, s, scaler, set)
	for name, write := range map[string]func(client.Client) error{
		"another kind": func(c client.Client) error {
			latest := &autoscalingv2.HorizontalPodAutoscaler{}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(scaler), latest); err != nil {
				return err
			}
			return c.Status().Update(t.Context(), latest)
		},
		"options": func(c client.Client) error {
			latest := &appsv1.ReplicaSet{}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(set), latest); err != nil {
				return err
			}
			return c.Status().Update(t.Context(), latest, client.DryRunAll)
		},
		"a patch": func(c client.Client) error {
			return c.Status().Patch(t.Context(), set.DeepCopy(), client.RawPatch("application/merge-patch+json",
				[]byte(`{"status":{"replicas":1}}`)))
		},
	} {
		if err := write(c); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := c.Delete(t.Context(), set.DeepCopy()); err != nil {
		t.Errorf("a deletion: %v", err)
	}
	if len(s.requests) > 0 {
		t.Errorf("requests %v", s.requests)
	}
}
