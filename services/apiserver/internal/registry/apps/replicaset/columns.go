package replicaset

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/services/apiserver/internal/registry/rest"
	"keelson.dev/services/apiserver/internal/registry/table"
)

var (
	specHelp   = appsv1.ReplicaSetSpec{}.SwaggerDoc()
	statusHelp = appsv1.ReplicaSetStatus{}.SwaggerDoc()
)

// columns are what kubectl get replicasets prints.
var columns = rest.NewColumns(
	rest.NameColumn[*appsv1.ReplicaSet](),
	rest.Column("Desired", "integer", specHelp["replicas"],
		func(rs *appsv1.ReplicaSet) any { return int64(ptr.Deref(rs.Spec.Replicas, defaultReplicas)) }),
	rest.Column("Current", "integer", statusHelp["replicas"],
		func(rs *appsv1.ReplicaSet) any { return int64(rs.Status.Replicas) }),
	rest.Column("Ready", "integer", statusHelp["readyReplicas"],
		func(rs *appsv1.ReplicaSet) any { return int64(rs.Status.ReadyReplicas) }),
	rest.AgeColumn[*appsv1.ReplicaSet](),
	rest.Column("Containers", "string", "Names of each container in the template.",
		func(rs *appsv1.ReplicaSet) any { return table.ContainerNames(rs.Spec.Template.Spec.Containers) }).Wide(),
	rest.Column("Images", "string", "Images referenced by each container in the template.",
		func(rs *appsv1.ReplicaSet) any { return table.ContainerImages(rs.Spec.Template.Spec.Containers) }).Wide(),
	rest.Column("Selector", "string", specHelp["selector"],
		func(rs *appsv1.ReplicaSet) any { return table.Selector(rs.Spec.Selector) }).Wide(),
)
