package resourceslice

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/fieldcheck/fieldtest"
	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

func newSlice(changes ...func(*resourcev1.ResourceSliceSpec)) *slice {
	s := &slice{Spec: resourcev1.ResourceSliceSpec{Driver: "gpu.example.com", NodeName: ptr.To("n1"),
		Pool:    resourcev1.ResourcePool{Name: "n1", ResourceSliceCount: 1},
		Devices: []resourcev1.Device{{Name: "gpu-0"}}}}
	for _, change := range changes {
		change(&s.Spec)
	}
	return s
}

// on is a change of the one device.
func on(change func(*resourcev1.Device)) func(*resourcev1.ResourceSliceSpec) {
	return func(s *resourcev1.ResourceSliceSpec) { change(&s.Devices[0]) }
}

func named(n int, change func(*resourcev1.Device)) func(*resourcev1.ResourceSliceSpec) {
	return func(s *resourcev1.ResourceSliceSpec) {
		s.Devices = nil
		for i := range n {
			d := resourcev1.Device{Name: fmt.Sprint("gpu-", i)}
			change(&d)
			s.Devices = append(s.Devices, d)
		}
	}
}

func plain(*resourcev1.Device) {}

func where(node *string, selector *corev1.NodeSelector, all, perDevice *bool) func(*resourcev1.ResourceSliceSpec) {
	return func(s *resourcev1.ResourceSliceSpec) {
		s.NodeName, s.NodeSelector, s.AllNodes, s.PerDeviceNodeSelection = node, selector, all, perDevice
	}
}

func zones(n int) *corev1.NodeSelector {
	s := &corev1.NodeSelector{}
	for range n {
		s.NodeSelectorTerms = append(s.NodeSelectorTerms, corev1.NodeSelectorTerm{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpExists}}})
	}
	return s
}

var (
	yes, no = ptr.To(true), ptr.To(false)
	n1      = ptr.To("n1")
)

func TestValidate(t *testing.T) {
	taint := func(n int) func(*resourcev1.Device) {
		return func(d *resourcev1.Device) {
			for i := range n {
				d.Taints = append(d.Taints, resourcev1.DeviceTaint{Key: fmt.Sprint("t", i), Effect: "NoSchedule"})
			}
		}
	}
	for name, row := range map[string]struct {
		change func(*resourcev1.ResourceSliceSpec)
		want   []string
	}{
		"plain":     {func(*resourcev1.ResourceSliceSpec) {}, nil},
		"no driver": {func(s *resourcev1.ResourceSliceSpec) { s.Driver = "" }, []string{"spec.driver: Required"}},
		"a long driver": {func(s *resourcev1.ResourceSliceSpec) { s.Driver = strings.Repeat("d", 64) },
			[]string{"spec.driver: Invalid"}},
		"no pool": {func(s *resourcev1.ResourceSliceSpec) { s.Pool.Name = "" },
			[]string{"spec.pool.name: Required"}},
		"a pool of parts": {func(s *resourcev1.ResourceSliceSpec) { s.Pool.Name = "a/b.c" }, nil},
		"of no slices": {func(s *resourcev1.ResourceSliceSpec) { s.Pool.ResourceSliceCount = 0 },
			[]string{"spec.pool.resourceSliceCount: Invalid value: 0: must be greater than zero"}},
		"before the first": {func(s *resourcev1.ResourceSliceSpec) { s.Pool.Generation = -1 },
			[]string{"spec.pool.generation: Invalid value: -1"}},

		"nowhere":        {where(nil, nil, nil, nil), []string{"spec: Required value: exactly one of `nodeName`"}},
		"everywhere":     {where(nil, nil, yes, nil), nil},
		"not everywhere": {where(n1, nil, no, nil), []string{"spec.allNodes: Invalid value: false"}},
		"in a zone":      {where(nil, zones(1), nil, nil), nil},
		"in two zones": {where(nil, zones(2), nil, nil),
			[]string{"spec.nodeSelector.nodeSelectorTerms: Invalid value: 2"}},
		"in no zone": {where(nil, zones(0), nil, nil),
			[]string{"spec.nodeSelector.nodeSelectorTerms: Required",
				"spec.nodeSelector.nodeSelectorTerms: Invalid value: 0"}},
		"in two ways": {where(n1, nil, yes, nil),
			[]string{"spec: Invalid value: \"{`nodeName`, `allNodes`}\": exactly one"}},
		"on no node":    {where(ptr.To(""), nil, nil, nil), []string{"spec.nodeName: Required"}},
		"on a bad node": {where(ptr.To("A"), nil, nil, nil), []string{"spec.nodeName: Invalid value: \"A\""}},
		"each by itself": {func(s *resourcev1.ResourceSliceSpec) {
			where(nil, nil, nil, yes)(s)
			s.Devices[0].NodeName = n1
		}, nil},
		"not by itself": {where(n1, nil, nil, no), []string{"spec.perDeviceNodeSelection: Invalid value: false"}},
		"by itself, no": {where(nil, nil, nil, yes), []string{"spec.devices[0]: Required value: exactly one of"}},
		"by itself, twice": {func(s *resourcev1.ResourceSliceSpec) {
			where(nil, nil, nil, yes)(s)
			s.Devices[0].NodeName, s.Devices[0].AllNodes = n1, yes
		}, []string{"spec.devices[0]: Invalid value: \"{`nodeName`, `allNodes`}\""}},
		"by both": {on(func(d *resourcev1.Device) { d.NodeName = n1 }),
			[]string{"spec.devices[0]: Invalid value: \"gpu-0\": `nodeName`, "}},

		"most devices": {named(128, plain), nil},
		"one more": {named(129, plain),
			[]string{"spec.devices: Too many: 129: must have at most 128 items"}},
		"most with taints": {named(64, taint(1)), nil},
		"one more with taints": {named(65, taint(1)),
			[]string{"spec.devices: Too many: 65: must have at most 64 items"}},
		"one of many consuming": {func(s *resourcev1.ResourceSliceSpec) {
			named(65, plain)(s)
			s.Devices[3].ConsumesCounters = consumed(1, 1)
		}, []string{"spec.devices: Too many: 65"}},
		"two of a name": {func(s *resourcev1.ResourceSliceSpec) { s.Devices = append(s.Devices, s.Devices[0]) },
			[]string{"spec.devices[1]: Duplicate value: \"gpu-0\""}},
		"no name": {on(func(d *resourcev1.Device) { d.Name = "" }), []string{"spec.devices[0].name: Required"}},

		"counters": {func(s *resourcev1.ResourceSliceSpec) { s.Devices, s.SharedCounters = nil, counters(8, 32) }, nil},
		// The library's checks, and what they leave to us.
		"too many sets": {func(s *resourcev1.ResourceSliceSpec) {
			s.Devices, s.SharedCounters = nil, counters(9, 1)
		}, []string{"spec.sharedCounters: Too many: 9"}},
		"too many in a set": {func(s *resourcev1.ResourceSliceSpec) {
			s.Devices, s.SharedCounters = nil, counters(1, 33)
		}, []string{"spec.sharedCounters[0].counters: Too many: 33"}},
		"both": {func(s *resourcev1.ResourceSliceSpec) { s.SharedCounters = counters(1, 1) },
			[]string{"spec: Invalid value: \"\": only one of"}},
		"consuming": {on(func(d *resourcev1.Device) { d.ConsumesCounters = consumed(2, 32) }), nil},
		"too many consumed": {on(func(d *resourcev1.Device) { d.ConsumesCounters = consumed(3, 1) }),
			[]string{"spec.devices[0].consumesCounters: Too many: 3"}},
		"too many of one": {on(func(d *resourcev1.Device) { d.ConsumesCounters = consumed(1, 33) }),
			[]string{"spec.devices[0].consumesCounters[0].counters: Too many: 33"}},

		"most taints":    {on(taint(16)), nil},
		"one taint more": {on(taint(17)), []string{"spec.devices[0].taints: Too many: 17"}},
		"a taint of nothing": {on(func(d *resourcev1.Device) { d.Taints = []resourcev1.DeviceTaint{{}} }),
			[]string{"spec.devices[0].taints[0].key: Required", "spec.devices[0].taints[0].effect: Required"}},
		"a malformed taint": {on(func(d *resourcev1.Device) {
			d.Taints = []resourcev1.DeviceTaint{{Key: "a b", Value: "c d", Effect: "x"}}
		}), []string{"spec.devices[0].taints[0].key: Invalid", "spec.devices[0].taints[0].value: Invalid",
			"spec.devices[0].taints[0].effect: Unsupported"}},
		"bound conditionally": {on(func(d *resourcev1.Device) { d.BindingConditions = []string{"a"} }),
			[]string{"spec.devices[0].bindingFailureConditions: Invalid"}},
	} {
		t.Run(name, func(t *testing.T) { fieldtest.Check(t, Validate(newSlice(row.change)), row.want...) })
	}
}

func counters(sets, each int) []resourcev1.CounterSet {
	var all []resourcev1.CounterSet
	for i := range sets {
		all = append(all, resourcev1.CounterSet{Name: fmt.Sprint("s", i), Counters: amounts(each)})
	}
	return all
}

func consumed(sets, each int) []resourcev1.DeviceCounterConsumption {
	var all []resourcev1.DeviceCounterConsumption
	for i := range sets {
		all = append(all, resourcev1.DeviceCounterConsumption{CounterSet: fmt.Sprint("s", i), Counters: amounts(each)})
	}
	return all
}

func amounts(n int) map[string]resourcev1.Counter {
	all := map[string]resourcev1.Counter{}
	for i := range n {
		all[fmt.Sprint("c", i)] = resourcev1.Counter{Value: resource.MustParse("1")}
	}
	return all
}

func TestAttributesAndCapacities(t *testing.T) {
	type all = map[resourcev1.QualifiedName]resourcev1.DeviceAttribute
	attributes := func(all all) func(*resourcev1.ResourceSliceSpec) {
		return on(func(d *resourcev1.Device) { d.Attributes = all })
	}
	text := func(s string) resourcev1.DeviceAttribute { return resourcev1.DeviceAttribute{StringValue: &s} }
	version := func(s string) func(*resourcev1.ResourceSliceSpec) {
		return attributes(all{"v": {VersionValue: &s}})
	}
	many := func(attributes, capacities int) func(*resourcev1.ResourceSliceSpec) {
		return on(func(d *resourcev1.Device) {
			d.Attributes = all{}
			d.Capacity = map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{}
			for i := range attributes {
				d.Attributes[resourcev1.QualifiedName(fmt.Sprint("a", i))] = text("x")
			}
			for i := range capacities {
				d.Capacity[resourcev1.QualifiedName(fmt.Sprint("c", i))] = resourcev1.DeviceCapacity{}
			}
		})
	}
	const at = "spec.devices[0].attributes"
	for name, row := range map[string]struct {
		change func(*resourcev1.ResourceSliceSpec)
		want   []string
	}{
		"as many as may be": {many(20, 12), nil},
		"one more":          {many(20, 13), []string{"spec.devices[0]: Too many: 33: must have at most 32 items"}},
		"longest text":      {attributes(all{"m": text(strings.Repeat("x", 64))}), nil},
		"a byte longer": {attributes(all{"m": text(strings.Repeat("x", 65))}),
			[]string{at + "[m].string: Too long"}},
		"a malformed name": {attributes(all{"a-b": text("x")}),
			[]string{at + `[a-b]: Invalid value: "a-b"`}},
		// The library's check.
		"no value": {attributes(all{"m": {}}),
			[]string{at + "[m]: Invalid value"}},
		"two values": {attributes(all{"m": {IntValue: ptr.To(int64(1)), BoolValue: yes}}),
			[]string{at + "[m]: Invalid value"}},
		"a version":            {version("1.20.3-rc.1+build.5"), nil},
		"no version":           {version("1.20"), []string{at + `[v].version: Invalid value: "1.20"`}},
		"a version with zeros": {version("1.02.3"), []string{at + `[v].version: Invalid value: "1.02.3"`}},
		"a long version":       {version("1.2.3-" + strings.Repeat("a", 59)), []string{at + "[v].version: Too long"}},
		"a capacity's name": {on(func(d *resourcev1.Device) {
			d.Capacity = map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"a/b/c": {}}
		}), []string{`spec.devices[0].capacity[a/b/c]: Invalid value: "a/b/c"`}},
	} {
		t.Run(name, func(t *testing.T) { fieldtest.Check(t, Validate(newSlice(row.change)), row.want...) })
	}
}

// policy is a device of which 10 are given away in portions.
func policy(p *resourcev1.CapacityRequestPolicy) func(*resourcev1.ResourceSliceSpec) {
	return on(func(d *resourcev1.Device) {
		d.AllowMultipleAllocations = yes
		d.Capacity = map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{
			"m": {Value: resource.MustParse("10"), RequestPolicy: p}}
	})
}

func quantity(text string) *resource.Quantity {
	if text == "" {
		return nil
	}
	return ptr.To(resource.MustParse(text))
}

func values(standard string, all ...string) *resourcev1.CapacityRequestPolicy {
	p := &resourcev1.CapacityRequestPolicy{Default: quantity(standard)}
	for _, value := range all {
		p.ValidValues = append(p.ValidValues, *quantity(value))
	}
	return p
}

func portions(standard, from, to, step string) *resourcev1.CapacityRequestPolicy {
	return &resourcev1.CapacityRequestPolicy{Default: quantity(standard),
		ValidRange: &resourcev1.CapacityRequestPolicyRange{Min: quantity(from), Max: quantity(to),
			Step: quantity(step)}}
}

func TestPolicies(t *testing.T) {
	const at = "spec.devices[0].capacity[m].requestPolicy"
	for name, row := range map[string]struct {
		policy *resourcev1.CapacityRequestPolicy
		want   []string
	}{
		"none":            {&resourcev1.CapacityRequestPolicy{}, nil},
		"values":          {values("2", "1", "2", "10"), nil},
		"no default":      {values("", "1"), []string{at + ".default: Required value: required when validValues"}},
		"another default": {values("3", "1", "2"), []string{at + `.validValues: Invalid value: "3": default value`}},
		"more than there is": {values("1", "1", "11"),
			[]string{at + `.validValues[1]: Invalid value: "11": option is larger`}},
		"out of order": {values("1", "2", "1"),
			[]string{at + `.validValues[1]: Invalid value: "1": values must be sorted`}},
		"twice":       {values("1", "1", "1000m"), []string{at + `.validValues[1]: Duplicate value`}},
		"most values": {values("1", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10"), nil},
		"one more": {values("1", "1", "2", "3", "4", "5", "6", "7", "8", "9", "9500m", "10"),
			[]string{at + ".validValues: Too many: 11"}},

		"a range":             {portions("3", "1", "9", "2"), nil},
		"a range without end": {portions("3", "1", "", "2"), nil},
		"a range of thirds":   {portions("300m", "100m", "900m", "200m"), nil},
		"no beginning":        {portions("3", "", "9", ""), []string{at + ".validRange.min: Required"}},
		"no standard": {portions("", "1", "9", ""),
			[]string{at + ".default: Required value: required when validRange"}},
		"beginning beyond": {portions("11", "11", "", ""),
			[]string{at + `.validRange.min: Invalid value: "11": min is larger than capacity`}},
		"ending beyond": {portions("1", "1", "11", ""),
			[]string{at + `.validRange.max: Invalid value: "11": max is larger than capacity`}},
		"upside down": {portions("5", "5", "4", ""),
			[]string{at + `.validRange.max: Invalid value: "5": min is larger than max`,
				at + `.validRange.default: Invalid value: "5": default is larger than max`}},
		"standard before": {portions("1", "2", "", ""),
			[]string{at + `.validRange.default: Invalid value: "2": min is larger than default`}},
		"no step": {portions("1", "1", "", "0"),
			[]string{at + `.validRange.step: Invalid value: "0": must be greater than zero`}},
		"too big a step": {portions("1", "1", "", "10"),
			[]string{at + `.validRange.step: Invalid value: "11": one step is larger than capacity`}},
		"standard between": {portions("2", "1", "", "2"),
			[]string{at + `.validRange.step: Invalid value: "2": default is not a multiple`}},
		"end between": {portions("1", "1", "4", "2"),
			[]string{at + `.validRange.step: Invalid value: "4": max is not a multiple`}},
		"standard between, 1m": {portions("1500m", "1", "", "1"),
			[]string{at + `.validRange.step: Invalid value: "1500m": default is not a multiple`}},
		"smaller than can be": {portions("1", "1", "", "1u"),
			[]string{at + `.validRange.step: Invalid value: "1u": must be a multiple of 1m`}},
		"a beginning below all": {portions("1", "-1", "", "1"),
			[]string{at + `.validRange.min: Invalid value: "-1": must be a whole number`}},
		"both": {&resourcev1.CapacityRequestPolicy{Default: quantity("1"), ValidValues: values("1", "1").ValidValues,
			ValidRange: portions("1", "1", "", "").ValidRange}, []string{at + ": Forbidden: exactly one policy"}},
	} {
		t.Run(name, func(t *testing.T) { fieldtest.Check(t, Validate(newSlice(policy(row.policy))), row.want...) })
	}
	alone := newSlice(policy(values("1", "1")))
	alone.Spec.Devices[0].AllowMultipleAllocations = no
	fieldtest.Check(t, Validate(alone), at+": Forbidden: allowMultipleAllocations must be true")
	// What a device had stays valid.
	fieldtest.Check(t, ValidateUpdate(alone, alone.DeepCopy()))
}

// A step that is no number of 64 bits neither divides by zero nor wraps around.
func TestHugeSteps(t *testing.T) {
	huge := newSlice(policy(portions("1", "1", "", "18446744073709551616")))
	capacity := huge.Spec.Devices[0].Capacity["m"]
	capacity.Value = resource.MustParse("1e30")
	huge.Spec.Devices[0].Capacity["m"] = capacity
	fieldtest.Check(t, Validate(huge), "spec.devices[0].capacity[m].requestPolicy.validRange.step: Invalid value")
}

func TestValidateUpdate(t *testing.T) {
	for name, row := range map[string]struct {
		to   func(*resourcev1.ResourceSliceSpec)
		want []string
	}{
		"other devices": {named(3, plain), nil},
		"a new turn": {func(s *resourcev1.ResourceSliceSpec) {
			s.Pool.Generation, s.Pool.ResourceSliceCount = 2, 3
		}, nil},
		"another driver": {func(s *resourcev1.ResourceSliceSpec) { s.Driver = "nic.example.com" },
			[]string{"spec.driver: Invalid value: \"nic.example.com\": field is immutable"}},
		"another pool": {func(s *resourcev1.ResourceSliceSpec) { s.Pool.Name = "n2" },
			[]string{"spec.pool.name: Invalid value: \"n2\": field is immutable"}},
		"another node": {func(s *resourcev1.ResourceSliceSpec) { s.NodeName = ptr.To("n2") },
			[]string{"spec.nodeName: Invalid value: \"n2\": field is immutable"}},
		"no node anymore": {where(nil, nil, yes, nil),
			[]string{"spec.nodeName: Invalid value: null: field is immutable"}},
	} {
		t.Run(name, func(t *testing.T) {
			fieldtest.Check(t, ValidateUpdate(newSlice(row.to), newSlice()), row.want...)
		})
	}
}

func TestWarnings(t *testing.T) {
	if told := Resource.Strategy.Warnings(newSlice()); told != nil {
		t.Errorf("tells %q", told)
	}
	upper := newSlice(func(s *resourcev1.ResourceSliceSpec) { s.Driver = "GPU.example.com" })
	if told := Resource.Strategy.Warnings(upper); len(told) != 1 || !strings.Contains(told[0], "GPU.example.com") {
		t.Errorf("tells %q", told)
	}
}

func TestColumns(t *testing.T) { tabletest.Golden(t, Resource) }
