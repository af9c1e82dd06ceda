package device

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/fieldcheck/fieldtest"
)

var specPath = field.NewPath("spec")

// exactly is a claim with one request.
func exactly(change func(*resourcev1.ExactDeviceRequest)) *resourcev1.ResourceClaimSpec {
	r := &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu"}
	if change != nil {
		change(r)
	}
	spec := &resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{
		Requests: []resourcev1.DeviceRequest{{Name: "gpu", Exactly: r}}}}
	Default(&spec.Devices)
	return spec
}

// claim is a claim with a request for one device and one with two alternatives.
func claim(change func(*resourcev1.DeviceClaim)) *resourcev1.ResourceClaimSpec {
	spec := exactly(nil)
	spec.Devices.Requests = append(spec.Devices.Requests, resourcev1.DeviceRequest{Name: "nic",
		FirstAvailable: []resourcev1.DeviceSubRequest{{Name: "fast", DeviceClassName: "fast"},
			{Name: "any", DeviceClassName: "any"}}})
	change(&spec.Devices)
	Default(&spec.Devices)
	return spec
}

func many[T any](n int, make func(i int) T) []T {
	var all []T
	for i := range n {
		all = append(all, make(i))
	}
	return all
}

func selector(expression string) resourcev1.DeviceSelector {
	return resourcev1.DeviceSelector{CEL: &resourcev1.CELDeviceSelector{Expression: expression}}
}

func opaque(driver, parameters string) resourcev1.DeviceConfiguration {
	return resourcev1.DeviceConfiguration{Opaque: &resourcev1.OpaqueDeviceConfiguration{Driver: driver,
		Parameters: runtime.RawExtension{Raw: []byte(parameters)}}}
}

func TestRequests(t *testing.T) {
	const request = "spec.devices.requests[0]"
	request1 := func(change func(*resourcev1.DeviceRequest)) *resourcev1.ResourceClaimSpec {
		spec := exactly(nil)
		change(&spec.Devices.Requests[0])
		return spec
	}
	for name, row := range map[string]struct {
		spec *resourcev1.ResourceClaimSpec
		want []string
	}{
		"one device":   {exactly(nil), nil},
		"no request":   {&resourcev1.ResourceClaimSpec{}, nil},
		"alternatives": {claim(func(*resourcev1.DeviceClaim) {}), nil},
		"without a name": {request1(func(r *resourcev1.DeviceRequest) { r.Name = "" }),
			[]string{request + ".name: Required"}},
		"a malformed name": {request1(func(r *resourcev1.DeviceRequest) { r.Name = "a/b" }),
			[]string{request + `.name: Invalid value: "a/b"`}},
		"neither way": {request1(func(r *resourcev1.DeviceRequest) { r.Exactly = nil }),
			[]string{request + ": Required value: exactly one of"}},
		"both ways": {request1(func(r *resourcev1.DeviceRequest) {
			r.FirstAvailable = []resourcev1.DeviceSubRequest{{Name: "a", DeviceClassName: "b",
				AllocationMode: resourcev1.DeviceAllocationModeAll}}
		}), []string{request + `: Invalid value: "gpu": exactly one of`}},
		"no class": {exactly(func(r *resourcev1.ExactDeviceRequest) { r.DeviceClassName = "" }),
			[]string{request + ".exactly.deviceClassName: Required"}},
		"a malformed class": {exactly(func(r *resourcev1.ExactDeviceRequest) { r.DeviceClassName = "A" }),
			[]string{request + `.exactly.deviceClassName: Invalid value: "A"`}},
		"all devices": {exactly(func(r *resourcev1.ExactDeviceRequest) {
			r.AllocationMode = resourcev1.DeviceAllocationModeAll
		}), nil},
		"a number of all devices": {exactly(func(r *resourcev1.ExactDeviceRequest) {
			r.AllocationMode, r.Count = resourcev1.DeviceAllocationModeAll, 1
		}), []string{request + ".exactly.count: Invalid value: 1: must not be specified"}},
		"less than none": {exactly(func(r *resourcev1.ExactDeviceRequest) { r.Count = -1 }),
			[]string{request + ".exactly.count: Invalid value: -1: must be greater than zero"}},
		// The library's check.
		"another mode": {exactly(func(r *resourcev1.ExactDeviceRequest) { r.AllocationMode = "Some" }),
			[]string{request + `.exactly.allocationMode: Unsupported value: "Some"`}},
		"most requests": {&resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: requests(32)}}, nil},
		"one more": {&resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: requests(33)}},
			[]string{"spec.devices.requests: Too many: 33"}},
		"the same name twice": {claim(func(c *resourcev1.DeviceClaim) { c.Requests[1].Name = "gpu" }),
			[]string{"spec.devices.requests[1]: Duplicate value"}},
		"an alternative without a name": {claim(func(c *resourcev1.DeviceClaim) {
			c.Requests[1].FirstAvailable[0].Name = ""
		}), []string{"spec.devices.requests[1].firstAvailable[0].name: Required"}},
		"an alternative without a class": {claim(func(c *resourcev1.DeviceClaim) {
			c.Requests[1].FirstAvailable[0].DeviceClassName = ""
		}), []string{"spec.devices.requests[1].firstAvailable[0].deviceClassName: Required"}},
	} {
		t.Run(name, func(t *testing.T) { fieldtest.Check(t, ValidateClaim(row.spec, specPath), row.want...) })
	}
}

func requests(n int) []resourcev1.DeviceRequest {
	return many(n, func(i int) resourcev1.DeviceRequest {
		return resourcev1.DeviceRequest{Name: fmt.Sprint("r", i), Exactly: &resourcev1.ExactDeviceRequest{
			DeviceClassName: "c", AllocationMode: resourcev1.DeviceAllocationModeAll}}
	})
}

func TestTolerations(t *testing.T) {
	const at = "spec.devices.requests[0].exactly.tolerations[0]"
	for name, row := range map[string]struct {
		toleration resourcev1.DeviceToleration
		want       []string
	}{
		"of a value":     {resourcev1.DeviceToleration{Key: "example.com/k", Value: "v", Effect: "NoExecute"}, nil},
		"of every value": {resourcev1.DeviceToleration{Key: "k", Operator: "Exists"}, nil},
		"of no value": {resourcev1.DeviceToleration{Key: "k", Operator: "Exists", Value: "v"},
			[]string{at + ".value: Invalid value: \"v\""}},
		"a malformed value": {resourcev1.DeviceToleration{Key: "k", Value: "a b"},
			[]string{at + ".value: Invalid value: \"a b\""}},
		// The library's checks.
		"a malformed key": {resourcev1.DeviceToleration{Key: "a b"}, []string{at + ".key: Invalid value: \"a b\""}},
		"another operator": {resourcev1.DeviceToleration{Operator: "Lt"},
			[]string{at + ".operator: Unsupported value: \"Lt\""}},
		"another effect": {resourcev1.DeviceToleration{Key: "k", Effect: "PreferNoSchedule"},
			[]string{at + ".effect: Unsupported value: \"PreferNoSchedule\""}},
	} {
		t.Run(name, func(t *testing.T) {
			spec := exactly(func(r *resourcev1.ExactDeviceRequest) {
				r.Tolerations = []resourcev1.DeviceToleration{row.toleration}
			})
			fieldtest.Check(t, ValidateClaim(spec, specPath), row.want...)
		})
	}
}

func TestConstraintsAndConfiguration(t *testing.T) {
	numa := ptr.To(resourcev1.FullyQualifiedName("example.com/numa"))
	constraint := func(c resourcev1.DeviceConstraint) *resourcev1.ResourceClaimSpec {
		return claim(func(claim *resourcev1.DeviceClaim) { claim.Constraints = []resourcev1.DeviceConstraint{c} })
	}
	config := func(c resourcev1.DeviceConfiguration, requests ...string) *resourcev1.ResourceClaimSpec {
		return claim(func(claim *resourcev1.DeviceClaim) {
			claim.Config = []resourcev1.DeviceClaimConfiguration{{Requests: requests, DeviceConfiguration: c}}
		})
	}
	const at, told = "spec.devices.constraints[0]", "spec.devices.config[0]"
	long := func(n int) string { return `{"a":"` + strings.Repeat("x", n-8) + `"}` }
	for name, row := range map[string]struct {
		spec *resourcev1.ResourceClaimSpec
		want []string
	}{
		"of all requests": {constraint(resourcev1.DeviceConstraint{MatchAttribute: numa}), nil},
		"of an alternative": {constraint(resourcev1.DeviceConstraint{DistinctAttribute: numa,
			Requests: []string{"gpu", "nic/any"}}), nil},
		"of another request": {constraint(resourcev1.DeviceConstraint{MatchAttribute: numa,
			Requests: []string{"x"}}), []string{at + `.requests[0]: Invalid value: "x": must be the name`}},
		"of another's": {constraint(resourcev1.DeviceConstraint{MatchAttribute: numa,
			Requests: []string{"gpu/fast"}}), []string{at + `.requests[0]: Invalid value: "gpu/fast"`}},
		"of something deeper": {constraint(resourcev1.DeviceConstraint{MatchAttribute: numa,
			Requests: []string{"nic/any/x"}}), []string{at + `.requests[0]: Invalid value: "nic/any/x"`}},
		"of a request and none": {constraint(resourcev1.DeviceConstraint{MatchAttribute: numa,
			Requests: []string{"nic/"}}), []string{at + `.requests[0]: Invalid value: "nic/"`}},
		"of no attribute": {constraint(resourcev1.DeviceConstraint{}),
			[]string{at + ": Required value: exactly one of"}},
		"of two attributes": {constraint(resourcev1.DeviceConstraint{MatchAttribute: numa,
			DistinctAttribute: numa}), []string{at + ": Invalid value"}},
		// The library's checks.
		"of an attribute of nobody": {constraint(resourcev1.DeviceConstraint{
			MatchAttribute: ptr.To(resourcev1.FullyQualifiedName("numa"))}),
			[]string{at + `.matchAttribute: Invalid value: "numa"`}},
		"of a request twice": {constraint(resourcev1.DeviceConstraint{MatchAttribute: numa,
			Requests: []string{"gpu", "gpu"}}), []string{at + `.requests[1]: Duplicate value: "gpu"`}},

		"a driver is told": {config(opaque("gpu.example.com", `{"a":1}`), "gpu"), nil},
		"of a request not there": {config(opaque("gpu.example.com", `{"a":1}`), "x"),
			[]string{told + `.requests[0]: Invalid value: "x"`}},
		"nobody is told": {config(resourcev1.DeviceConfiguration{}), []string{told + ".opaque: Required"}},
		"told nothing": {config(opaque("gpu.example.com", "")),
			[]string{told + ".opaque.parameters: Required"}},
		"told null": {config(opaque("gpu.example.com", "null")),
			[]string{told + ".opaque.parameters: Required"}},
		"told a number": {config(opaque("gpu.example.com", "1")),
			[]string{told + `.opaque.parameters: Invalid value: "<value omitted>": must be a valid JSON object`}},
		"told what is no JSON": {config(opaque("gpu.example.com", "{")),
			[]string{told + ".opaque.parameters: Invalid value: \"<value omitted>\": error parsing data as JSON"}},
		"told as much as may be": {config(opaque("gpu.example.com", long(10240))), nil},
		"told a byte more": {config(opaque("gpu.example.com", long(10241))),
			[]string{told + ".opaque.parameters: Too long: may not be more than 10240 bytes"}},
		"a driver without a name": {config(opaque("", `{}`)), []string{told + ".opaque.driver: Required"}},
		"a driver with a long one": {config(opaque(strings.Repeat("d", 64), `{}`)),
			[]string{told + ".opaque.driver: Too long"}},
		"a malformed driver": {config(opaque("a_b", `{}`)),
			[]string{told + ".opaque.driver: Invalid value: \"a_b\""}},
	} {
		t.Run(name, func(t *testing.T) { fieldtest.Check(t, ValidateClaim(row.spec, specPath), row.want...) })
	}
}

// What is stored already may be longer than what is new, and is an object all the same.
func TestStoredConfiguration(t *testing.T) {
	long := opaque("gpu.example.com", `{"a":"`+strings.Repeat("x", 10240)+`"}`)
	fieldtest.Check(t, ValidateConfiguration(&long, true, specPath))
	number := opaque("gpu.example.com", "1")
	fieldtest.Check(t, ValidateConfiguration(&number, true, specPath), "spec.opaque.parameters: Invalid value")
}

func TestSelectors(t *testing.T) {
	const at = "spec[0].cel.expression"
	// Each step of all() costs the size of what it goes over, so nested ones grow by powers.
	dear := strings.Repeat(`device.attributes["x.example.com"].all(b, `, 4) + "true" + strings.Repeat(")", 4)
	for name, row := range map[string]struct {
		selector resourcev1.DeviceSelector
		want     []string
	}{
		"a driver":     {selector(`device.driver == "gpu.example.com"`), nil},
		"an attribute": {selector(`device.attributes["x.example.com"].model == "a"`), nil},
		"shared ones":  {selector(`device.allowMultipleAllocations`), nil},
		"no selector":  {resourcev1.DeviceSelector{}, []string{"spec[0].cel: Required"}},
		"no CEL":       {selector("device."), []string{at + ": Invalid value: \"device.\": compilation failed"}},
		"no answer": {selector(`device.driver`),
			[]string{at + ": Invalid value: \"device.driver\": must evaluate to bool"}},
		// Lists as attributes are off.
		"of a list": {selector(`device.attributes["x.example.com"].models.includes("a")`),
			[]string{at + ": Invalid value"}},
		"too dear": {selector(dear), []string{at + ": Forbidden: too complex, exceeds cost limit"}},
		"longest":  {selector("true" + strings.Repeat(" ", 10236)), nil},
		"too long": {selector("true" + strings.Repeat(" ", 10237)),
			[]string{at + ": Too long: may not be more than 10240 bytes"}},
	} {
		t.Run(name, func(t *testing.T) {
			all := []resourcev1.DeviceSelector{row.selector}
			fieldtest.Check(t, NewSelectors(nil).Validate(all, specPath), row.want...)
			if row.selector.CEL != nil {
				fieldtest.Check(t, NewSelectors(all).Validate(all, specPath))
			}
		})
	}
}

// One expression in several places is compiled once, and what is wrong with it is told of each place.
func TestSelectorsAreToldOfWhereTheyStand(t *testing.T) {
	s := NewSelectors(nil)
	wrong := []resourcev1.DeviceSelector{selector("1"), selector("true"), selector("1")}
	fieldtest.Check(t, s.Validate(wrong, specPath), "spec[0].cel.expression: Invalid",
		"spec[2].cel.expression: Invalid")
	if len(s.found) != 2 {
		t.Errorf("%d expressions were compiled", len(s.found))
	}
}

// One object may not bring more to compile than its bound: what is stored and what was seen costs nothing.
func TestSelectorsAreBounded(t *testing.T) {
	var all []resourcev1.DeviceSelector
	for i := range CompiledBytes / 8192 {
		all = append(all, selector("true"+strings.Repeat(" ", 8188-i)+strings.Repeat("\n", i)))
	}
	all = append(all, all[0])
	fieldtest.Check(t, NewSelectors(nil).Validate(all, specPath))
	more := append(slices.Clone(all), selector("1"))
	fieldtest.Check(t, NewSelectors(nil).Validate(more, specPath), fmt.Sprintf(
		"spec[%d].cel.expression: Forbidden: the different expressions of one object may have 65536 bytes together",
		len(all)))
	fieldtest.Check(t, NewSelectors(all[:1]).Validate(append(slices.Clone(all), selector("true")), specPath))
}

func TestDefault(t *testing.T) {
	spec := claim(func(c *resourcev1.DeviceClaim) {
		c.Requests[0].Exactly.Tolerations = []resourcev1.DeviceToleration{{Key: "a"}, {Key: "b", Operator: "Exists"}}
		c.Requests[1].FirstAvailable[1].AllocationMode = resourcev1.DeviceAllocationModeAll
		c.Requests[1].FirstAvailable[0].Tolerations = []resourcev1.DeviceToleration{{Key: "a"}}
	})
	exact, alternatives := spec.Devices.Requests[0].Exactly, spec.Devices.Requests[1].FirstAvailable
	if exact.AllocationMode != "ExactCount" || exact.Count != 1 || exact.Tolerations[0].Operator != "Equal" ||
		exact.Tolerations[1].Operator != "Exists" {
		t.Errorf("a request is for %+v", exact)
	}
	if alternatives[0].AllocationMode != "ExactCount" || alternatives[0].Count != 1 ||
		alternatives[0].Tolerations[0].Operator != "Equal" || alternatives[1].Count != 0 {
		t.Errorf("alternatives are %+v", alternatives)
	}
}

func TestNames(t *testing.T) {
	for name, row := range map[string]struct {
		check func(string) []string
		good  []string
		bad   []string
	}{
		"pools": {PoolName, []string{"n1", "a/b.c/d", strings.Repeat("p", 253)},
			[]string{"a//b", "/a", "A", strings.Repeat("p", 254)}},
		"attributes": {QualifiedName, []string{"model", "_m", "example.com/model", "EXAMPLE.com/m",
			strings.Repeat("m", 32)},
			[]string{"", "1m", "a-b", "/m", "m/", "a/b/c", "a_b/m", strings.Repeat("m", 33),
				strings.Repeat("d", 64) + "/m"}},
	} {
		for _, good := range row.good {
			if messages := row.check(good); len(messages) > 0 {
				t.Errorf("%s: %q: %q", name, good, messages)
			}
		}
		for _, bad := range row.bad {
			if len(row.check(bad)) == 0 {
				t.Errorf("%s: %q passes", name, bad)
			}
		}
	}
}

func TestBindingConditions(t *testing.T) {
	for name, row := range map[string]struct {
		conditions, failures, want []string
	}{
		"none":          {},
		"both":          {[]string{"example.com/ready", "b"}, []string{"c"}, nil},
		"no failure":    {[]string{"a"}, nil, []string{"spec.bindingFailureConditions: Invalid value"}},
		"failures only": {nil, []string{"a"}, []string{"spec.bindingConditions: Invalid value"}},
		"twice": {[]string{"a", "a"}, []string{"b", "b"}, []string{`spec.bindingConditions[1]: Duplicate value: "a"`,
			`spec.bindingFailureConditions[1]: Duplicate value: "b"`}},
		"the same": {[]string{"a"}, []string{"a"},
			[]string{`spec.bindingFailureConditions[0]: Invalid value: "a": bindingFailureConditions must not`}},
		"malformed": {[]string{"a b"}, []string{"c"}, []string{`spec.bindingConditions[0]: Invalid value: "a b"`}},
	} {
		t.Run(name, func(t *testing.T) {
			fieldtest.Check(t, ValidateBindingConditions(row.conditions, row.failures, specPath), row.want...)
		})
	}
}
