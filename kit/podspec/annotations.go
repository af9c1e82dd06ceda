package podspec

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// DeletionCostAnnotation ranks a ReplicaSet's Pods for deletion: the cheapest go first.
const DeletionCostAnnotation = corev1.PodDeletionCost

// ValidateAnnotations checks the values of the annotations that the control plane itself reads.
func ValidateAnnotations(annotations map[string]string, fldPath *field.Path) field.ErrorList {
	cost, set := annotations[DeletionCostAnnotation]
	if !set || isDeletionCost(cost) {
		return nil
	}
	return field.ErrorList{field.Invalid(fldPath.Key(DeletionCostAnnotation), cost, "must be a 32bit integer")}
}

// isDeletionCost reports whether the cost is a 32-bit integer written in its shortest form.
func isDeletionCost(cost string) bool {
	number, err := strconv.ParseInt(cost, 10, 32)
	return err == nil && strconv.FormatInt(number, 10) == cost
}
