package resourceclaim

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
)

// deviceID is what an allocated device is known by. Of one that several share each share is a device.
type deviceID struct{ driver, pool, device, share string }

func allocatedID(r *resourcev1.DeviceRequestAllocationResult) deviceID {
	return deviceID{r.Driver, r.Pool, r.Device, string(ptr.Deref(r.ShareID, ""))}
}

func reportedID(d *resourcev1.AllocatedDeviceStatus) deviceID {
	return deviceID{d.Driver, d.Pool, d.Device, ptr.Deref(d.ShareID, "")}
}

// allocated are the devices that the claim has.
func allocated(status *resourcev1.ResourceClaimStatus) sets.Set[deviceID] {
	devices := sets.New[deviceID]()
	if status.Allocation != nil {
		for i := range status.Allocation.Devices.Results {
			devices.Insert(allocatedID(&status.Allocation.Devices.Results[i]))
		}
	}
	return devices
}

// prepareStatus leaves the metadata as it is, leaves out what features that are off would bring, and lets go of what
// drivers have said of devices that the claim no longer has.
func prepareStatus(c, old *claim) {
	metav1.ResetObjectMetaForStatus(&c.ObjectMeta, &old.ObjectMeta)
	if c.Status.Allocation != nil {
		for i := range c.Status.Allocation.Devices.Results {
			c.Status.Allocation.Devices.Results[i].SkipNodeOperations = nil
		}
	}
	lost := allocated(&old.Status).Difference(allocated(&c.Status))
	if len(lost) == 0 {
		return
	}
	c.Status.Devices = slices.DeleteFunc(c.Status.Devices, func(d resourcev1.AllocatedDeviceStatus) bool {
		return lost.Has(reportedID(&d))
	})
	if len(c.Status.Devices) == 0 {
		c.Status.Devices = nil
	}
}

// rebinds reports whether a write gives the claim devices, takes them, or changes for whom they are.
func rebinds(now, was *resourcev1.ResourceClaimStatus) bool {
	return !equality.Semantic.DeepEqual(now.Allocation, was.Allocation) ||
		!equality.Semantic.DeepEqual(now.ReservedFor, was.ReservedFor)
}

// changedDrivers are the drivers of the devices of which a write says something else than before, in their order. What
// was said of a device that the claim no longer has goes with the device, whoever takes it.
func changedDrivers(now, was *resourcev1.ResourceClaimStatus) []string {
	before := map[deviceID]*resourcev1.AllocatedDeviceStatus{}
	for i := range was.Devices {
		before[reportedID(&was.Devices[i])] = &was.Devices[i]
	}
	changed := sets.New[string]()
	for i := range now.Devices {
		reported := &now.Devices[i]
		id := reportedID(reported)
		if old, known := before[id]; !known || !equality.Semantic.DeepEqual(old, reported) {
			changed.Insert(reported.Driver)
		}
		delete(before, id)
	}
	has := allocated(now)
	for id := range before {
		if has.Has(id) {
			changed.Insert(id.driver)
		}
	}
	return sets.List(changed)
}

// nodeOf is the one node on which the claim's devices are; empty where they are not of one node.
func nodeOf(status *resourcev1.ResourceClaimStatus) string {
	if status.Allocation == nil || status.Allocation.NodeSelector == nil {
		return ""
	}
	terms := status.Allocation.NodeSelector.NodeSelectorTerms
	if len(terms) != 1 || len(terms[0].MatchExpressions) != 0 || len(terms[0].MatchFields) != 1 {
		return ""
	}
	is := terms[0].MatchFields[0]
	if is.Key != metav1.ObjectNameField || is.Operator != corev1.NodeSelectorOpIn || len(is.Values) != 1 {
		return ""
	}
	return is.Values[0]
}
