package replicaset

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/services/apiserver/internal/registry/table"
	"keelson.dev/services/apiserver/internal/resource"
)

var (
	specHelp   = appsv1.ReplicaSetSpec{}.SwaggerDoc()
	statusHelp = appsv1.ReplicaSetStatus{}.SwaggerDoc()
)

// columns are what kubectl get replicasets prints.
var columns = resource.NewColumns(
	resource.NameColumn[*appsv1.ReplicaSet](),
	resource.Column("Desired", "integer", specHelp["replicas"],
		func(rs *appsv1.ReplicaSet) any { return int64(ptr.Deref(rs.Spec.Replicas, defaultReplicas)) }),
	resource.Column("Current", "integer", statusHelp["replicas"],
		func(rs *appsv1.ReplicaSet) any { return int64(rs.Status.Replicas) }),
	resource.Column("Ready", "integer", statusHelp["readyReplicas"],
		func(rs *appsv1.ReplicaSet) any { return int64(rs.Status.ReadyReplicas) }),
	resource.AgeColumn[*appsv1.ReplicaSet](),
	resource.Column("Containers", "string", "Names of each container in the template.",
		func(rs *appsv1.ReplicaSet) any { return table.ContainerNames(rs.Spec.Template.Spec.Containers) }).Wide(),
	resource.Column("Images", "string", "Images referenced by each container in the template.",
		func(rs *appsv1.ReplicaSet) any { return table.ContainerImages(rs.Spec.Template.Spec.Containers) }).Wide(),
	resource.Column("Selector", "string", specHelp["selector"],
		func(rs *appsv1.ReplicaSet) any { return table.Selector(rs.Spec.Selector) }).Wide(),
)
