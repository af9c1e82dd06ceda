package owners

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata/fake"
	"k8s.io/utils/lru"

	"keelson.dev/services/podgc/internal/resources"
)

// Who names the UID of somebody else's owner in a place where it is not makes that owner absent for nobody but himself.
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
