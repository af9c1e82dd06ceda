package daemonset

import (
	appsv1 "k8s.io/api/apps/v1"

	"keelson.dev/services/apiserver/internal/registry/table"
	"keelson.dev/services/apiserver/internal/resource"
)

var statusHelp = appsv1.DaemonSetStatus{}.SwaggerDoc()

// columns are what kubectl get daemonsets prints.
var columns = resource.NewColumns(
	resource.NameColumn[*appsv1.DaemonSet](),
	count("Desired", "desiredNumberScheduled",
		func(s *appsv1.DaemonSetStatus) int32 { return s.DesiredNumberScheduled }),
	count("Current", "currentNumberScheduled",
		func(s *appsv1.DaemonSetStatus) int32 { return s.CurrentNumberScheduled }),
	count("Ready", "numberReady", func(s *appsv1.DaemonSetStatus) int32 { return s.NumberReady }),
	count("Up-to-date", "updatedNumberScheduled",
		func(s *appsv1.DaemonSetStatus) int32 { return s.UpdatedNumberScheduled }),
	count("Available", "numberAvailable", func(s *appsv1.DaemonSetStatus) int32 { return s.NumberAvailable }),
	resource.Column("Node Selector", "string", "Labels that a node must have to run the Pod.",
		func(d *appsv1.DaemonSet) any { return table.Labels(d.Spec.Template.Spec.NodeSelector) }),
	resource.AgeColumn[*appsv1.DaemonSet](),
	resource.Column("Containers", "string", "Names of each container in the template.",
		func(d *appsv1.DaemonSet) any { return table.ContainerNames(d.Spec.Template.Spec.Containers) }).Wide(),
	resource.Column("Images", "string", "Images referenced by each container in the template.",
		func(d *appsv1.DaemonSet) any { return table.ContainerImages(d.Spec.Template.Spec.Containers) }).Wide(),
	resource.Column("Selector", "string", appsv1.DaemonSetSpec{}.SwaggerDoc()["selector"],
		func(d *appsv1.DaemonSet) any { return table.Selector(d.Spec.Selector) }).Wide(),
)

func count(heading, field string, get func(*appsv1.DaemonSetStatus) int32) resource.TableColumn[*appsv1.DaemonSet] {
	return resource.Column(heading, "integer", statusHelp[field],
		func(d *appsv1.DaemonSet) any { return int64(get(&d.Status)) })
}
