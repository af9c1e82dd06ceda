package deployment

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/services/apiserver/internal/registry/rest"
	"keelson.dev/services/apiserver/internal/registry/table"
)

var statusHelp = appsv1.DeploymentStatus{}.SwaggerDoc()

// columns are what kubectl get deployments prints.
var columns = rest.Columns[*appsv1.Deployment]{
	Definitions: []metav1.TableColumnDefinition{
		rest.NameColumn(),
		rest.Column("Ready", "string", "Number of the pod with ready state"),
		rest.Column("Up-to-date", "string", statusHelp["updatedReplicas"]),
		rest.Column("Available", "string", statusHelp["availableReplicas"]),
		rest.AgeColumn(),
		rest.WideColumn("Containers", "string", "Names of each container in the template."),
		rest.WideColumn("Images", "string", "Images referenced by each container in the template."),
		rest.WideColumn("Selector", "string", appsv1.DeploymentSpec{}.SwaggerDoc()["selector"]),
	},
	Row: row,
}

func row(d *appsv1.Deployment, now time.Time) []any {
	containers := d.Spec.Template.Spec.Containers
	return []any{
		d.Name,
		fmt.Sprintf("%d/%d", d.Status.ReadyReplicas, ptr.Deref(d.Spec.Replicas, defaultReplicas)),
		int64(d.Status.UpdatedReplicas),
		int64(d.Status.AvailableReplicas),
		rest.Age(d.CreationTimestamp, now),
		table.ContainerNames(containers),
		table.ContainerImages(containers),
		table.Selector(d.Spec.Selector),
	}
}
