package owners

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata/fake"
	"k8s.io/utils/lru"

	"keelson.dev/services/podgc/internal/resources"
)

// Who names the UID of somebody else's owner in a place where it is not makes that owner absent for nobody but
// himself.
func TestAnOwnerIsAbsentWhereItWasLookedForOnly(t *testing.T) {
	scheme := fake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	owner := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "theirs", Name: "owner", UID: "owner-uid"}}
	l := &lookup{client: fake.NewSimpleMetadataClient(scheme, owner), absent: lru.New(rememberAbsent),
		resourceOf: func(of schema.GroupKind) (resources.Resource, bool) {
			resource := map[string]string{"ConfigMap": "configmaps", "Secret": "secrets"}[of.Kind]
			return resources.Resource{Namespaced: true,
				GroupVersionResource: corev1.SchemeGroupVersion.WithResource(resource)}, true
		}}
	for _, row := range []struct {
		namespace, kind, name string
		want                  OwnerState
	}{
		{"mine", "ConfigMap", "owner", Absent},
		{"theirs", "Secret", "owner", Absent},
		{"theirs", "ConfigMap", "another", Absent},
		{"theirs", "ConfigMap", "owner", Present},
		{"mine", "ConfigMap", "owner", Absent},
	} {
		dependent := object("dependent")
		dependent.Namespace = row.namespace
		got, err := l.find(t.Context(), dependent, metav1.OwnerReference{APIVersion: "v1", Kind: row.kind,
			Name: row.name, UID: "owner-uid"})
		if err != nil || got != row.want {
			t.Errorf("%+v: %v, %v", row, got, err)
		}
	}
}

// What has been seen to go is absent also when nobody serves its kind any more; of all else that says nothing.
func TestAnOwnerWentBeforeItsKind(t *testing.T) {
	served := true
	l := &lookup{absent: lru.New(rememberAbsent), resourceOf: func(schema.GroupKind) (resources.Resource, bool) {
		return resources.Resource{Namespaced: true}, served
	}}
	c := &collector{graph: newGraph(), lookup: l}
	widget := func(uid types.UID, namespace, name string) *Object {
		o := object(uid)
		o.Kind, o.Namespace, o.Name = "Widget", namespace, name
		o.Resource = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
		return o
	}
	of := func(uid types.UID) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "Widget", Name: string(uid), UID: uid}
	}
	dependent := object("dependent")
	dependent.Namespace = "a"
	dependent.Owners = []metav1.OwnerReference{of("seen"), of("wide"), of("there"), of("elsewhere"), of("never")}
	c.observe(dependent)
	for _, o := range []*Object{widget("seen", "a", "seen"), widget("wide", "", "wide"), widget("there", "a", "there"),
		widget("elsewhere", "b", "elsewhere")} {
		c.observe(o)
	}
	for _, uid := range []types.UID{"seen", "wide", "elsewhere", "never"} {
		c.remove(uid)
	}
	served = false
	for uid, want := range map[types.UID]OwnerState{"seen": Absent, "wide": Absent, "there": Unknown,
		"elsewhere": Unknown, "never": Unknown} {
		if got, err := l.find(t.Context(), dependent, of(uid)); got != want || (err == nil) != (want == Absent) {
			t.Errorf("%s: %v, %v, want %v", uid, got, err, want)
		}
	}
}
