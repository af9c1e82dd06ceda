package deployment

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/services/apiserver/internal/registry/table"
	"keelson.dev/services/apiserver/internal/resource"
)

var statusHelp = appsv1.DeploymentStatus{}.SwaggerDoc()

// columns are what kubectl get deployments prints.
var columns = resource.NewColumns(
	resource.NameColumn[*appsv1.Deployment](),
	resource.Column("Ready", "string", "Number of the pod with ready state", readyCell),
	resource.Column("Up-to-date", "string", statusHelp["updatedReplicas"],
		func(d *appsv1.Deployment) any { return int64(d.Status.UpdatedReplicas) }),
	resource.Column("Available", "string", statusHelp["availableReplicas"],
		func(d *appsv1.Deployment) any { return int64(d.Status.AvailableReplicas) }),
	resource.AgeColumn[*appsv1.Deployment](),
	resource.Column("Containers", "string", "Names of each container in the template.",
		func(d *appsv1.Deployment) any { return table.ContainerNames(d.Spec.Template.Spec.Containers) }).Wide(),
	resource.Column("Images", "string", "Images referenced by each container in the template.",
		func(d *appsv1.Deployment) any { return table.ContainerImages(d.Spec.Template.Spec.Containers) }).Wide(),
	resource.Column("Selector", "string", appsv1.DeploymentSpec{}.SwaggerDoc()["selector"],
		func(d *appsv1.Deployment) any { return table.Selector(d.Spec.Selector) }).Wide(),
)

func readyCell(d *appsv1.Deployment) any {
	return fmt.Sprintf("%d/%d", d.Status.ReadyReplicas, ptr.Deref(d.Spec.Replicas, defaultReplicas))
}
