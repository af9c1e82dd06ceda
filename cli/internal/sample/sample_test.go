package sample

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/yaml"
)

func TestTheManifestIsAValidDeployment(t *testing.T) {
	var d appsv1.Deployment
	if err := yaml.UnmarshalStrict(Manifest, &d); err != nil {
		t.Fatal(err)
	}
	if d.Name != Name || d.Namespace != Namespace || *d.Spec.Replicas != 3 ||
		d.Spec.Template.Spec.Containers[0].Image != "keelson.dev/hello:1" {
		t.Errorf("got %+v", d)
	}
}

func TestExists(t *testing.T) {
	if there, err := Exists(t.Context(), fake.NewClientset()); err != nil || there {
		t.Errorf("in an empty mesh: %t, %v", there, err)
	}
}
