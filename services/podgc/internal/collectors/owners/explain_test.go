package owners

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/lru"

	"keelson.dev/services/podgc/internal/resources"
)

// Asking looks for owners as a pass does, and writes nothing, not even the Event about an owner that is never found.
func TestExplain(t *testing.T) {
	scheme := fake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	api := fake.NewSimpleMetadataClient(scheme)
	api.PrependReactor("get", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("it is down")
	})
	c := &collector{graph: newGraph(), lookup: &lookup{client: api, absent: lru.New(rememberAbsent),
		misplaced: func(*Object, metav1.OwnerReference) { t.Error("an Event is recorded") },
		resourceOf: func(of schema.GroupKind) (resources.Resource, bool) {
			resource := map[string]string{"ConfigMap": "configmaps", "Secret": "secrets"}[of.Kind]
			return resources.Resource{Namespaced: true,
				GroupVersionResource: corev1.SchemeGroupVersion.WithResource(resource)}, resource != ""
		}}}
	owned := func(name, namespace, kind string) *Object {
		o := object("uid-x", metav1.OwnerReference{APIVersion: "v1", Kind: kind, Name: "owner", UID: "uid-owner"})
		o.Name, o.Namespace = name, namespace
		return o
	}
	for _, row := range []struct {
		name   string
		object *Object
		want   string
	}{
		{"gone", owned("x", "ns", "ConfigMap"),
			"in its next pass deletes it, as none of its owners stays: ConfigMap owner is gone"},
		{"no answer", owned("x", "ns", "Secret"),
			"waits for word of its owner Secret owner: looking for owner Secret owner: it is down"},
		{"not served", owned("x", "ns", "Widget"),
			"waits for word of its owner Widget owner: owner owner of Thing ns/x: kind Widget of v1 is not served"},
		{"of the cluster", owned("x", "", "ConfigMap"), "waits for somebody to take off its reference to the owner " +
			"ConfigMap owner, which is never found: it lives in a namespace, which this object does not"},
	} {
		c.observe(row.object)
		e, known := c.explain(t.Context(), "", "uid-x")
		if !known || e.Summary != row.want {
			t.Errorf("%s: %q, %t, want %q", row.name, e.Summary, known, row.want)
		}
	}
	if _, known := c.explain(t.Context(), "ns", "x"); known {
		t.Error("an object is known by its name")
	}
	for _, action := range api.Actions() {
		if action.GetVerb() != "get" {
			t.Errorf("it asks to %s", action.GetVerb())
		}
	}
}
