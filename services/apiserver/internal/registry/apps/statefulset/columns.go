package statefulset

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/services/apiserver/internal/registry/table"
	"keelson.dev/services/apiserver/internal/resource"
)

// columns are what kubectl get statefulsets prints.
var columns = resource.NewColumns(
	resource.NameColumn[*appsv1.StatefulSet](),
	resource.Column("Ready", "string", "Number of the pod with ready state", readyCell),
	resource.AgeColumn[*appsv1.StatefulSet](),
	resource.Column("Containers", "string", "Names of each container in the template.",
		func(s *appsv1.StatefulSet) any { return table.ContainerNames(s.Spec.Template.Spec.Containers) }).Wide(),
	resource.Column("Images", "string", "Images referenced by each container in the template.",
		func(s *appsv1.StatefulSet) any { return table.ContainerImages(s.Spec.Template.Spec.Containers) }).Wide(),
)

func readyCell(s *appsv1.StatefulSet) any {
	return fmt.Sprintf("%d/%d", s.Status.ReadyReplicas, ptr.Deref(s.Spec.Replicas, defaultReplicas))
}
