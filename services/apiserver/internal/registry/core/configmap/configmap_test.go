package configmap

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/fieldcheck/fieldtest"
)

func TestValidate(t *testing.T) {
	half := string(make([]byte, corev1.MaxSecretSize/2))
	for _, row := range []struct {
		name string
		cm   corev1.ConfigMap
		want []string
	}{
		{"empty", corev1.ConfigMap{}, nil},
		{"both kinds of data", corev1.ConfigMap{Data: map[string]string{"a": "x"},
			BinaryData: map[string][]byte{"b": {0}}}, nil},
		{"bad keys", corev1.ConfigMap{Data: map[string]string{"a b": ""}, BinaryData: map[string][]byte{"..": nil}},
			[]string{`data[a b]: Invalid value: "a b"`, `binaryData[..]: Invalid value: ".."`}},
		{"one key twice", corev1.ConfigMap{Data: map[string]string{"a": ""}, BinaryData: map[string][]byte{"a": nil}},
			[]string{`data[a]: Invalid value: "a": duplicate of key present in binaryData`}},
		{"largest", corev1.ConfigMap{Data: map[string]string{"a": half, "b": half}}, nil},
		{"too large", corev1.ConfigMap{Data: map[string]string{"a": half, "b": half},
			BinaryData: map[string][]byte{"c": {0}}}, []string{"[]: Too long"}},
	} {
		t.Run(row.name, func(t *testing.T) { fieldtest.Check(t, Validate(&row.cm), row.want...) })
	}
}

func TestValidateUpdate(t *testing.T) {
	frozen := corev1.ConfigMap{Data: map[string]string{"a": "x"}, Immutable: ptr.To(true)}
	for _, row := range []struct {
		name string
		edit func(*corev1.ConfigMap)
		want []string
	}{
		{"itself", func(*corev1.ConfigMap) {}, nil},
		{"labels", func(c *corev1.ConfigMap) { c.Labels = map[string]string{"a": "b"} }, nil},
		{"data", func(c *corev1.ConfigMap) { c.Data["a"] = "y" },
			[]string{"data: Forbidden: field is immutable when `immutable` is set"}},
		{"binary data", func(c *corev1.ConfigMap) { c.BinaryData = map[string][]byte{"b": nil} },
			[]string{"binaryData: Forbidden: field is immutable"}},
		{"thawing", func(c *corev1.ConfigMap) { c.Immutable = ptr.To(false) },
			[]string{"immutable: Forbidden: field is immutable"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := frozen.DeepCopy()
			row.edit(c)
			fieldtest.Check(t, ValidateUpdate(c, &frozen), row.want...)
		})
	}
}
