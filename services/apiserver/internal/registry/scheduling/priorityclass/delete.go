package priorityclass

import (
	"errors"

	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// validateDelete keeps the system's own classes.
func validateDelete(pc *schedulingv1.PriorityClass) error {
	if !isSystem(pc.Name) {
		return nil
	}
	return apierrors.NewForbidden(schedulingv1.Resource("priorityclasses"), pc.Name,
		errors.New("this is a system priority class and cannot be deleted"))
}
