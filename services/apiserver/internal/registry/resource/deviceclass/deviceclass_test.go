package deviceclass

import (
	"strings"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/fieldcheck/fieldtest"
	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

func class(expressions ...string) *resourcev1.DeviceClass {
	c := &resourcev1.DeviceClass{}
	for _, expression := range expressions {
		c.Spec.Selectors = append(c.Spec.Selectors,
			resourcev1.DeviceSelector{CEL: &resourcev1.CELDeviceSelector{Expression: expression}})
	}
	return c
}

func telling(parameters string) *resourcev1.DeviceClass {
	c := class()
	c.Spec.Config = []resourcev1.DeviceClassConfiguration{{DeviceConfiguration: resourcev1.DeviceConfiguration{
		Opaque: &resourcev1.OpaqueDeviceConfiguration{Driver: "gpu.example.com",
			Parameters: runtime.RawExtension{Raw: []byte(parameters)}}}}}
	return c
}

func named(name string) *resourcev1.DeviceClass {
	c := class()
	c.Spec.ExtendedResourceName = ptr.To(name)
	return c
}

func selectors(n int) *resourcev1.DeviceClass {
	return class(strings.Split(strings.TrimSuffix(strings.Repeat("true,", n), ","), ",")...)
}

func TestValidate(t *testing.T) {
	long := `{"a":"` + strings.Repeat("x", 10240) + `"}`
	for name, row := range map[string]struct {
		class, old *resourcev1.DeviceClass
		want       []string
	}{
		"of everything":    {class: class()},
		"of a driver":      {class: class(`device.driver == "gpu.example.com"`)},
		"of no CEL":        {class: class("device."), want: []string{"spec.selectors[0].cel.expression: Invalid"}},
		"as it was stored": {class: class("device."), old: class("device.")},
		"with another": {class: class("device.", "1"), old: class("device."),
			want: []string{"spec.selectors[1].cel.expression: Invalid"}},
		"most selectors":   {class: selectors(32)},
		"one more":         {class: selectors(33), want: []string{"spec.selectors: Too many: 33"}},
		"told a lot":       {class: telling(long), want: []string{"spec.config[0].opaque.parameters: Too long"}},
		"told what it was": {class: telling(long), old: telling(long)},
		"told more": {class: telling(long), old: telling("{}"),
			want: []string{"spec.config[0].opaque.parameters: Too long"}},
		"for a resource": {class: named("example.com/gpu")},
		"for the API's": {class: named("kubernetes.io/gpu"),
			want: []string{"spec.extendedResourceName: Invalid value"}},
		"for cpu": {class: named("cpu"), want: []string{"spec.extendedResourceName: Invalid value"}},
	} {
		t.Run(name, func(t *testing.T) {
			if row.old == nil {
				fieldtest.Check(t, Validate(row.class), row.want...)
				return
			}
			fieldtest.Check(t, ValidateUpdate(row.class, row.old), row.want...)
		})
	}
}

func TestColumns(t *testing.T) { tabletest.Golden(t, Resource) }
