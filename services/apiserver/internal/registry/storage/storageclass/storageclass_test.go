package storageclass

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/fieldcheck/fieldtest"
	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

func class(edits ...func(*storagev1.StorageClass)) *storagev1.StorageClass {
	c := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}, Provisioner: "Example.com/Disk"}
	for _, edit := range edits {
		edit(c)
	}
	Default(c)
	return c
}

func numbered(n int) map[string]string {
	parameters := map[string]string{}
	for i := range n {
		parameters[fmt.Sprint(i)] = ""
	}
	return parameters
}

func told(parameters map[string]string) func(*storagev1.StorageClass) {
	return func(c *storagev1.StorageClass) { c.Parameters = parameters }
}

func topology(terms ...[]corev1.TopologySelectorLabelRequirement) func(*storagev1.StorageClass) {
	return func(c *storagev1.StorageClass) {
		for _, expressions := range terms {
			c.AllowedTopologies = append(c.AllowedTopologies,
				corev1.TopologySelectorTerm{MatchLabelExpressions: expressions})
		}
	}
}

func TestDefault(t *testing.T) {
	if c := class(); *c.ReclaimPolicy != "Delete" || *c.VolumeBindingMode != "Immediate" {
		t.Errorf("%s, %s", *c.ReclaimPolicy, *c.VolumeBindingMode)
	}
}

func TestValidate(t *testing.T) {
	zone := []corev1.TopologySelectorLabelRequirement{{Key: "zone", Values: []string{"a", "b"}}}
	for _, row := range []struct {
		name  string
		class *storagev1.StorageClass
		want  []string
	}{
		{"plain", class(), nil},
		{"no provisioner", class(func(c *storagev1.StorageClass) { c.Provisioner = "" }),
			[]string{"provisioner: Required value"}},
		{"a provisioner that is no name", class(func(c *storagev1.StorageClass) { c.Provisioner = "a b" }),
			[]string{`provisioner: Invalid value: "a b": name part must consist of`}},
		{"most parameters", class(told(numbered(512))), nil},
		{"one more", class(told(numbered(513))), []string{"parameters: Too many: 513: must have at most 512 items"}},
		{"longest", class(told(map[string]string{"a": strings.Repeat("x", 256<<10-1)})), nil},
		{"a byte more", class(told(map[string]string{"a": strings.Repeat("x", 256<<10)})),
			[]string{"parameters: Too long: may not be more than 262144 bytes"}},
		{"a parameter without a name", class(told(map[string]string{"": "x"})),
			[]string{`parameters: Invalid value: "": field can not be empty`}},
		{"recycling", class(func(c *storagev1.StorageClass) {
			c.ReclaimPolicy = ptr.To(corev1.PersistentVolumeReclaimRecycle)
		}), []string{`reclaimPolicy: Unsupported value: "Recycle": supported values: "Delete", "Retain"`}},
		{"binding some day", class(func(c *storagev1.StorageClass) {
			c.VolumeBindingMode = ptr.To(storagev1.VolumeBindingMode("Later"))
		}),
			[]string{
				`volumeBindingMode: Unsupported value: "Later": supported values: "Immediate", "WaitForFirstConsumer"`}},
		{"zones", class(topology(zone)), nil},
		{"the same zones twice", class(topology(zone, zone)),
			[]string{`allowedTopologies[1].matchLabelExpressions: Duplicate value: ""`}},
		{"a key twice", class(topology(append(zone, zone...))),
			[]string{`allowedTopologies[0].matchLabelExpressions[1].key: Duplicate value: "zone"`}},
		{"a value twice, and none", class(topology([]corev1.TopologySelectorLabelRequirement{
			{Key: "zone", Values: []string{"a", "a"}}, {Key: "rack"}, {Key: "a b", Values: []string{"a"}}})),
			[]string{
				`allowedTopologies[0].matchLabelExpressions[0].values[1]: Duplicate value: "a"`,
				"allowedTopologies[0].matchLabelExpressions[1].values: Required value",
				`allowedTopologies[0].matchLabelExpressions[2].key: Invalid value: "a b": name part must consist of`,
			}},
	} {
		t.Run(row.name, func(t *testing.T) { fieldtest.Check(t, Validate(row.class), row.want...) })
	}
}

func TestValidateUpdate(t *testing.T) {
	changed := class(told(map[string]string{"a": "b"}), func(c *storagev1.StorageClass) {
		c.Provisioner, c.ReclaimPolicy = "b", ptr.To(corev1.PersistentVolumeReclaimRetain)
		c.VolumeBindingMode = ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)
	})
	fieldtest.Check(t, ValidateUpdate(changed, class()),
		`provisioner: Invalid value: "b": field is immutable`,
		`parameters: Invalid value: {"a":"b"}: field is immutable`,
		`reclaimPolicy: Invalid value: "Retain": field is immutable`,
		`volumeBindingMode: Invalid value: "WaitForFirstConsumer": field is immutable`)
	fieldtest.Check(t, ValidateUpdate(class(func(c *storagev1.StorageClass) {
		c.AllowVolumeExpansion, c.MountOptions = ptr.To(true), []string{"ro"}
	}), class()))
}

func TestColumns(t *testing.T) { tabletest.Golden(t, Resource) }
