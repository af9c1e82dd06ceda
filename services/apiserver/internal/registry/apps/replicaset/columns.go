package replicaset

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/services/apiserver/internal/registry/rest"
	"keelson.dev/services/apiserver/internal/registry/table"
)

var statusHelp = appsv1.ReplicaSetStatus{}.SwaggerDoc()

// columns are what kubectl get replicasets prints.
var columns = rest.Columns[*appsv1.ReplicaSet]{
	Definitions: []metav1.TableColumnDefinition{
		rest.NameColumn(),
		rest.Column("Desired", "integer", appsv1.ReplicaSetSpec{}.SwaggerDoc()["replicas"]),
		rest.Column("Current", "integer", statusHelp["replicas"]),
		rest.Column("Ready", "integer", statusHelp["readyReplicas"]),
		rest.AgeColumn(),
		rest.WideColumn("Containers", "string", "Names of each container in the template."),
		rest.WideColumn("Images", "string", "Images referenced by each container in the template."),
		rest.WideColumn("Selector", "string", appsv1.ReplicaSetSpec{}.SwaggerDoc()["selector"]),
	},
	Row: row,
}

func row(rs *appsv1.ReplicaSet, now time.Time) []any {
	containers := rs.Spec.Template.Spec.Containers
	return []any{
		rs.Name,
		int64(ptr.Deref(rs.Spec.Replicas, defaultReplicas)),
		int64(rs.Status.Replicas),
		int64(rs.Status.ReadyReplicas),
		rest.Age(rs.CreationTimestamp, now),
		table.ContainerNames(containers),
		table.ContainerImages(containers),
		table.Selector(rs.Spec.Selector),
	}
}
