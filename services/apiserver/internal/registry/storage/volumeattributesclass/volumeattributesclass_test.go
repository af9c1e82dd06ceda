package volumeattributesclass

import (
	"strings"
	"testing"

	storagev1 "k8s.io/api/storage/v1"

	"keelson.dev/kit/fieldcheck/fieldtest"
	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

func class(driver string, parameters map[string]string) *storagev1.VolumeAttributesClass {
	return &storagev1.VolumeAttributesClass{DriverName: driver, Parameters: parameters}
}

func TestValidate(t *testing.T) {
	fast := map[string]string{"iops": "500"}
	for _, row := range []struct {
		name  string
		class *storagev1.VolumeAttributesClass
		want  []string
	}{
		{"plain", class("disk.example.com", fast), nil},
		{"longest driver", class(strings.Repeat("d", 63), fast), nil},
		{"a driver one longer", class(strings.Repeat("d", 64), fast),
			[]string{`driverName: Invalid value: "dddd`}},
		{"nothing", class("", nil), []string{"driverName: Required value",
			"parameters: Required value: must contain at least one key/value pair"}},
		{"a parameter without a name", class("d", map[string]string{"": "x"}),
			[]string{`parameters: Invalid value: ""`}},
	} {
		t.Run(row.name, func(t *testing.T) { fieldtest.Check(t, Validate(row.class), row.want...) })
	}
}

func TestValidateUpdate(t *testing.T) {
	old := class("a", map[string]string{"iops": "500"})
	fieldtest.Check(t, ValidateUpdate(class("b", map[string]string{"iops": "5"}), old),
		`driverName: Invalid value: "b": field is immutable`,
		`parameters: Invalid value: {"iops":"5"}: field is immutable`)
	fieldtest.Check(t, ValidateUpdate(old.DeepCopy(), old))
}

func TestColumns(t *testing.T) { tabletest.Golden(t, Resource) }
