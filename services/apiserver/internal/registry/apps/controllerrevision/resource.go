// Package controllerrevision is the API resource controllerrevisions of group apps: one state of a StatefulSet's or a
// DaemonSet's template, kept to tell Pods apart by it and to go back to it.
//
//keelson:decision
package controllerrevision

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"keelson.dev/services/apiserver/internal/registry/table"
	"keelson.dev/services/apiserver/internal/resource"
)

var help = appsv1.ControllerRevision{}.SwaggerDoc()

// Resource is the ControllerRevision.
var Resource = resource.Resource[*appsv1.ControllerRevision]{
	Group:    appsv1.GroupName,
	Name:     "controllerrevisions",
	Singular: "controllerrevision",
	New:      func() *appsv1.ControllerRevision { return &appsv1.ControllerRevision{} },
	NewList:  func() runtime.Object { return &appsv1.ControllerRevisionList{} },
	Strategy: resource.Strategy[*appsv1.ControllerRevision]{Validate: Validate, ValidateUpdate: ValidateUpdate},
	Columns: resource.NewColumns(
		resource.NameColumn[*appsv1.ControllerRevision](),
		resource.Column("Controller", "string", "Controller of the object", controllerCell),
		resource.Column("Revision", "string", help["revision"],
			func(r *appsv1.ControllerRevision) any { return r.Revision }),
		resource.AgeColumn[*appsv1.ControllerRevision](),
	),
}

// controllerCell names the controller as kubectl takes it, for example statefulset.apps/web.
func controllerCell(r *appsv1.ControllerRevision) any {
	owner := metav1.GetControllerOf(r)
	if owner == nil {
		return table.None
	}
	group := schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind()
	return fmt.Sprintf("%s/%s", strings.ToLower(group.String()), owner.Name)
}
