package replicationcontroller

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/services/apiserver/internal/registry/table"
	"keelson.dev/services/apiserver/internal/resource"
)

var (
	specHelp   = corev1.ReplicationControllerSpec{}.SwaggerDoc()
	statusHelp = corev1.ReplicationControllerStatus{}.SwaggerDoc()
)

// columns are what kubectl get replicationcontrollers prints.
var columns = resource.NewColumns(
	resource.NameColumn[*corev1.ReplicationController](),
	resource.Column("Desired", "integer", specHelp["replicas"],
		func(rc *corev1.ReplicationController) any { return int64(ptr.Deref(rc.Spec.Replicas, defaultReplicas)) }),
	resource.Column("Current", "integer", statusHelp["replicas"],
		func(rc *corev1.ReplicationController) any { return int64(rc.Status.Replicas) }),
	resource.Column("Ready", "integer", statusHelp["readyReplicas"],
		func(rc *corev1.ReplicationController) any { return int64(rc.Status.ReadyReplicas) }),
	resource.AgeColumn[*corev1.ReplicationController](),
	resource.Column("Containers", "string", "Names of each container in the template.",
		func(rc *corev1.ReplicationController) any { return table.ContainerNames(containers(rc)) }).Wide(),
	resource.Column("Images", "string", "Images referenced by each container in the template.",
		func(rc *corev1.ReplicationController) any { return table.ContainerImages(containers(rc)) }).Wide(),
	resource.Column("Selector", "string", specHelp["selector"],
		func(rc *corev1.ReplicationController) any { return table.Labels(rc.Spec.Selector) }).Wide(),
)

func containers(rc *corev1.ReplicationController) []corev1.Container {
	if rc.Spec.Template == nil {
		return nil
	}
	return rc.Spec.Template.Spec.Containers
}
