package podspec

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// mostContainers bounds the containers of a Pod: each adds about 2 KiB to a status that has to fit into one object.
const mostContainers = 200

// validateBounds refuses a Pod whose status might be too large to be written.
func validateBounds(spec *corev1.PodSpec, fldPath *field.Path) field.ErrorList {
	count := len(spec.Containers) + len(spec.InitContainers) + len(spec.EphemeralContainers)
	if count <= mostContainers {
		return nil
	}
	return field.ErrorList{field.Forbidden(fldPath, fmt.Sprintf("a Pod has at most %d containers of all kinds, not %d",
		mostContainers, count))}
}
