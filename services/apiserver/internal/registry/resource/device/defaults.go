package device

import resourcev1 "k8s.io/api/resource/v1"

// Default fills in what a claim leaves out: a request without a mode is for a number of devices, and that is one.
func Default(claim *resourcev1.DeviceClaim) {
	for i := range claim.Requests {
		request := &claim.Requests[i]
		if exact := request.Exactly; exact != nil {
			defaultCount(&exact.AllocationMode, &exact.Count)
			DefaultTolerations(exact.Tolerations)
		}
		for j := range request.FirstAvailable {
			alternative := &request.FirstAvailable[j]
			defaultCount(&alternative.AllocationMode, &alternative.Count)
			DefaultTolerations(alternative.Tolerations)
		}
	}
}

func defaultCount(mode *resourcev1.DeviceAllocationMode, count *int64) {
	if *mode == "" {
		*mode = resourcev1.DeviceAllocationModeExactCount
	}
	if *mode == resourcev1.DeviceAllocationModeExactCount && *count == 0 {
		*count = 1
	}
}

// DefaultTolerations lets tolerations without an operator be of one value.
func DefaultTolerations(tolerations []resourcev1.DeviceToleration) {
	for i := range tolerations {
		if tolerations[i].Operator == "" {
			tolerations[i].Operator = resourcev1.DeviceTolerationOpEqual
		}
	}
}

// DropUnserved clears the fields of features that are off. The API ignores such fields instead of refusing them.
func DropUnserved(claim *resourcev1.DeviceClaim) {
	for i := range claim.Requests {
		request := &claim.Requests[i]
		if request.Exactly != nil {
			request.Exactly.DerivedAttributes = nil
		}
		for j := range request.FirstAvailable {
			request.FirstAvailable[j].DerivedAttributes = nil
		}
	}
}
