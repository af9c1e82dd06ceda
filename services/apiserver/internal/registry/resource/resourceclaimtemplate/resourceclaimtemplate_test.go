package resourceclaimtemplate

import (
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/kit/fieldcheck/fieldtest"
	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

func one(change func(*template)) *template {
	t := &template{Spec: resourcev1.ResourceClaimTemplateSpec{Spec: resourcev1.ResourceClaimSpec{
		Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{Name: "gpu",
			Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu"}}}}}}}
	change(t)
	Resource.Default(t)
	return t
}

func TestValidate(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*template)
		want   []string
	}{
		"one device": {func(*template) {}, nil},
		"labels": {func(t *template) {
			t.Spec.ObjectMeta = metav1.ObjectMeta{Labels: map[string]string{"a": "b"},
				Annotations: map[string]string{"c": "d"}}
		}, nil},
		"malformed labels": {func(t *template) {
			t.Spec.ObjectMeta = metav1.ObjectMeta{Labels: map[string]string{"a b": ""},
				Annotations: map[string]string{"c d": ""}}
		}, []string{`spec.metadata.labels: Invalid value: "a b"`, `spec.metadata.annotations: Invalid value: "c d"`}},
		"no class": {func(t *template) { t.Spec.Spec.Devices.Requests[0].Exactly.DeviceClassName = "" },
			[]string{"spec.spec.devices.requests[0].exactly.deviceClassName: Required"}},
	} {
		t.Run(name, func(t *testing.T) { fieldtest.Check(t, Validate(one(row.change)), row.want...) })
	}
}

func TestATemplateNeverChanges(t *testing.T) {
	old := one(func(*template) {})
	fieldtest.Check(t, ValidateUpdate(one(func(*template) {}), old))
	fieldtest.Check(t, ValidateUpdate(one(func(t *template) { t.Spec.Labels = map[string]string{"a": "b"} }), old),
		"spec: Invalid value")
}

func TestDerivedAttributesAreDropped(t *testing.T) {
	made := one(func(t *template) {
		t.Spec.Spec.Devices.Requests[0].Exactly.DerivedAttributes = []resourcev1.DeviceDerivedAttribute{{Name: "a/b"}}
	})
	Resource.ObjectWrites().PrepareForCreate(made)
	if left := made.Spec.Spec.Devices.Requests[0].Exactly.DerivedAttributes; left != nil {
		t.Errorf("keeps %v", left)
	}
}

func TestColumns(t *testing.T) { tabletest.Golden(t, Resource) }
