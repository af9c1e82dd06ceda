package resourceclaim

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/fieldcheck/fieldtest"
	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

type status = resourcev1.ResourceClaimStatus

func newClaim(changes ...func(*status)) *claim {
	c := &claim{Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{
		{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu"}}}}}}
	for _, change := range changes {
		change(&c.Status)
	}
	Default(c)
	return c
}

// has gives the claim devices of a driver.
func has(devices ...string) func(*status) {
	return func(s *status) {
		s.Allocation = &resourcev1.AllocationResult{}
		for _, name := range devices {
			s.Allocation.Devices.Results = append(s.Allocation.Devices.Results,
				resourcev1.DeviceRequestAllocationResult{
					Request: "gpu", Driver: "gpu.example.com", Pool: "n1", Device: name})
		}
	}
}

// result changes the first device.
func result(change func(*resourcev1.DeviceRequestAllocationResult)) func(*status) {
	return func(s *status) {
		has("gpu-0")(s)
		change(&s.Allocation.Devices.Results[0])
	}
}

func serves(n int) func(*status) {
	return func(s *status) {
		for i := range n {
			name := fmt.Sprint("p", i)
			s.ReservedFor = append(s.ReservedFor, resourcev1.ResourceClaimConsumerReference{Resource: "pods",
				Name: name,
				UID:  types.UID(name)})
		}
	}
}

// reports says something of a device.
func reports(device string, change func(*resourcev1.AllocatedDeviceStatus)) func(*status) {
	return func(s *status) {
		d := resourcev1.AllocatedDeviceStatus{Driver: "gpu.example.com", Pool: "n1", Device: device}
		if change != nil {
			change(&d)
		}
		s.Devices = append(s.Devices, d)
	}
}

func all(changes ...func(*status)) func(*status) {
	return func(s *status) {
		for _, change := range changes {
			change(s)
		}
	}
}

func none(*status) {}

func TestValidateUpdate(t *testing.T) {
	changed := newClaim()
	changed.Spec.Devices.Requests[0].Exactly.Count = 2
	fieldtest.Check(t, ValidateUpdate(changed, newClaim()), "spec: Invalid value")
	// What is stored is not asked about again.
	odd := newClaim()
	odd.Spec.Devices.Requests[0].Name = ""
	fieldtest.Check(t, ValidateUpdate(odd.DeepCopy(), odd))
	fieldtest.Check(t, Validate(odd), "spec.devices.requests[0].name: Required")
}

func TestValidateStatusUpdate(t *testing.T) {
	const at = "status.allocation.devices.results[0]"
	for name, row := range map[string]struct {
		from, to func(*status)
		want     []string
	}{
		"nothing":      {none, none, nil},
		"a device":     {none, has("gpu-0"), nil},
		"no device":    {none, has(), nil},
		"most devices": {none, has(strings.Split(strings.Repeat("d", 32), "")...), nil},
		"one more": {none, has(strings.Split(strings.Repeat("d", 33), "")...),
			[]string{"status.allocation.devices.results: Too many: 33"}},
		"another device": {has("gpu-0"), has("gpu-1"), []string{"status.allocation: Invalid value"}},
		"taken away":     {has("gpu-0"), none, nil},
		// What was allocated by older rules stays.
		"as it was": {has("GPU"), all(has("GPU"), serves(1)), nil},

		"for somebody": {none, all(has("gpu-0"), serves(1)), nil},
		"for many":     {has("gpu-0"), all(has("gpu-0"), serves(256)), nil},
		"for too many": {has("gpu-0"), all(has("gpu-0"), serves(257)),
			[]string{"status.reservedFor: Too many: 257"}},
		"for one twice": {has("gpu-0"), all(has("gpu-0"), serves(1), serves(1)),
			[]string{"status.reservedFor[1]: Duplicate value"}},
		"without a device":   {none, serves(1), []string{"status.reservedFor: Forbidden"}},
		"taken while in use": {all(has("gpu-0"), serves(1)), serves(1), []string{"status.reservedFor: Forbidden"}},
		"for nobody's name": {has("gpu-0"), all(has("gpu-0"), func(s *status) {
			s.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{}}
		}), []string{"status.reservedFor[0].resource: Required", "status.reservedFor[0].name: Required",
			"status.reservedFor[0].uid: Required"}},

		"of another request": {none, result(func(r *resourcev1.DeviceRequestAllocationResult) { r.Request = "nic" }),
			[]string{at + `.request: Invalid value: "nic"`}},
		"of no name": {none, result(func(r *resourcev1.DeviceRequestAllocationResult) { r.Device = "" }),
			[]string{at + ".device: Required"}},
		"of no pool": {none, result(func(r *resourcev1.DeviceRequestAllocationResult) { r.Pool = "" }),
			[]string{at + ".pool: Required"}},
		"of no driver": {none, result(func(r *resourcev1.DeviceRequestAllocationResult) { r.Driver = "" }),
			[]string{at + ".driver: Required"}},
		"of a bad share": {none,
			result(func(r *resourcev1.DeviceRequestAllocationResult) { r.ShareID = ptr.To(types.UID("x")) }),
			[]string{at + ".shareID: Invalid value"}},
		"half conditions": {none,
			result(func(r *resourcev1.DeviceRequestAllocationResult) { r.BindingConditions = []string{"a"} }),
			[]string{at + ".bindingFailureConditions: Invalid value"}},
		"on no node": {none, all(has("gpu-0"), func(s *status) { s.Allocation.NodeSelector = &corev1.NodeSelector{} }),
			[]string{"status.allocation.nodeSelector.nodeSelectorTerms: Required"}},
		"told by nobody": {none, all(has("gpu-0"), func(s *status) {
			s.Allocation.Devices.Config = []resourcev1.DeviceAllocationConfiguration{{Requests: []string{"nic"}}}
		}), []string{"status.allocation.devices.config[0].source: Required",
			"status.allocation.devices.config[0].opaque: Required",
			`status.allocation.devices.config[0].requests[0]: Invalid value: "nic"`}},

		"a report": {has("gpu-0"), all(has("gpu-0"), reports("gpu-0", nil)), nil},
		"of another device": {has("gpu-0"), all(has("gpu-0"), reports("gpu-1", nil)),
			[]string{`status.devices[0]: Invalid value: "gpu.example.com/n1/gpu-1": must be an allocated device`}},
		"of another's share": {has("gpu-0"), all(has("gpu-0"),
			reports("gpu-0", func(d *resourcev1.AllocatedDeviceStatus) {
				d.ShareID = ptr.To("5b1f2c3d-0000-4000-8000-000000000000")
			})),
			[]string{"status.devices[0]: Invalid value"}},
		"of one device twice": {has("gpu-0"), all(has("gpu-0"), reports("gpu-0", nil), reports("gpu-0", nil)),
			[]string{"status.devices[1]: Duplicate value"}},
		"of more than can be": {has("gpu-0"), all(has("gpu-0"),
			func(s *status) { s.Devices = make([]resourcev1.AllocatedDeviceStatus, 33) }),
			[]string{"status.devices: Too many: 33"}},
		"most conditions": {has("gpu-0"), all(has("gpu-0"), reports("gpu-0", conditions(8))), nil},
		"one condition more": {has("gpu-0"), all(has("gpu-0"), reports("gpu-0", conditions(9))),
			[]string{"status.devices[0].conditions: Too many: 9"}},
		"a condition of a kind": {has("gpu-0"), all(has("gpu-0"),
			reports("gpu-0", func(d *resourcev1.AllocatedDeviceStatus) {
				conditions(2)(d)
				d.Conditions[1].Type, d.Conditions[0].Reason = d.Conditions[0].Type, ""
			})), []string{"status.devices[0].conditions[1]", "status.devices[0].conditions[0].reason: Required"}},
		"data": {has("gpu-0"), all(has("gpu-0"), reports("gpu-0", data(10240))), nil},
		"too much data": {has("gpu-0"), all(has("gpu-0"), reports("gpu-0", data(10241))),
			[]string{"status.devices[0].data: Too long"}},
		"addresses": {has("gpu-0"), all(has("gpu-0"), reports("gpu-0", network("10.0.0.1/8", "fd00::1/64"))), nil},
		"no addresses": {has("gpu-0"), all(has("gpu-0"), reports("gpu-0", network("10.0.0.1"))),
			[]string{"status.devices[0].networkData.ips[0]: Invalid value"}},
	} {
		t.Run(name, func(t *testing.T) {
			fieldtest.Check(t, ValidateStatusUpdate(newClaim(row.to), newClaim(row.from)), row.want...)
		})
	}
}

func conditions(n int) func(*resourcev1.AllocatedDeviceStatus) {
	return func(d *resourcev1.AllocatedDeviceStatus) {
		for i := range n {
			d.Conditions = append(d.Conditions, metav1.Condition{Type: fmt.Sprint("C", i), Status: "True", Reason: "R",
				LastTransitionTime: metav1.Unix(1, 0)})
		}
	}
}

func data(bytes int) func(*resourcev1.AllocatedDeviceStatus) {
	return func(d *resourcev1.AllocatedDeviceStatus) {
		d.Data = &runtime.RawExtension{Raw: []byte(`{"a":"` + strings.Repeat("x", bytes-8) + `"}`)}
	}
}

func network(addresses ...string) func(*resourcev1.AllocatedDeviceStatus) {
	return func(d *resourcev1.AllocatedDeviceStatus) {
		d.NetworkData = &resourcev1.NetworkDeviceData{IPs: addresses}
	}
}

// A claim that is being deleted keeps its consumers, and takes no others.
func TestNobodyComesToAClaimThatGoes(t *testing.T) {
	old := newClaim(has("gpu-0"), serves(2))
	old.DeletionTimestamp = ptr.To(metav1.Unix(1, 0))
	fewer, more := old.DeepCopy(), old.DeepCopy()
	fewer.Status.ReservedFor = fewer.Status.ReservedFor[1:]
	more.Status.ReservedFor = nil
	serves(3)(&more.Status)
	fieldtest.Check(t, ValidateStatusUpdate(fewer, old))
	fieldtest.Check(t, ValidateStatusUpdate(more, old), "status.reservedFor: Forbidden: new entries may not be added")
}

func TestDefault(t *testing.T) {
	c := newClaim(result(func(r *resourcev1.DeviceRequestAllocationResult) {
		r.Tolerations = []resourcev1.DeviceToleration{{Key: "k"}}
	}))
	if got := c.Status.Allocation.Devices.Results[0].Tolerations[0].Operator; got != "Equal" {
		t.Errorf("operator %q", got)
	}
	if got := c.Spec.Devices.Requests[0].Exactly.Count; got != 1 {
		t.Errorf("%d devices", got)
	}
}

func TestColumns(t *testing.T) { tabletest.Golden(t, Resource) }
