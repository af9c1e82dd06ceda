// Package runtimeclass is the resource RuntimeClass of group node.k8s.io: a way in which nodes can run containers.
//
//keelson:decision
package runtimeclass

import (
	nodev1 "k8s.io/api/node/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/fieldcheck"
	"keelson.dev/kit/podspec"
	"keelson.dev/services/apiserver/internal/resource"
)

// Resource is the RuntimeClass.
var Resource = resource.Resource[*nodev1.RuntimeClass]{
	Group:         nodev1.GroupName,
	Name:          "runtimeclasses",
	Singular:      "runtimeclass",
	ClusterScoped: true,
	New:           func() *nodev1.RuntimeClass { return &nodev1.RuntimeClass{} },
	NewList:       func() runtime.Object { return &nodev1.RuntimeClassList{} },
	Strategy: resource.Strategy[*nodev1.RuntimeClass]{
		Validate: Validate, ValidateUpdate: ValidateUpdate, CreateOnUpdate: true,
	},
	Columns: resource.NewColumns(
		resource.NameColumn[*nodev1.RuntimeClass](),
		resource.Column("Handler", "string", nodev1.RuntimeClass{}.SwaggerDoc()["handler"],
			func(c *nodev1.RuntimeClass) any { return c.Handler }),
		resource.AgeColumn[*nodev1.RuntimeClass](),
	),
}

var handlerPath = field.NewPath("handler")

// Validate returns what is wrong with a class.
func Validate(c *nodev1.RuntimeClass) field.ErrorList {
	errs := fieldcheck.Required(c.Handler, handlerPath, validation.IsDNS1123Label)
	if c.Overhead != nil {
		errs = append(errs, fieldcheck.Amounts(c.Overhead.PodFixed, field.NewPath("overhead", "podFixed"))...)
	}
	if c.Scheduling != nil {
		at := field.NewPath("scheduling")
		errs = append(errs, metav1validation.ValidateLabels(c.Scheduling.NodeSelector, at.Child("nodeSelector"))...)
		errs = append(errs, podspec.ValidateTolerations(c.Scheduling.Tolerations, at.Child("tolerations"))...)
	}
	return errs
}

// ValidateUpdate returns what is wrong with c as the successor of old: containers were started by its handler.
func ValidateUpdate(c, old *nodev1.RuntimeClass) field.ErrorList {
	return append(Validate(c), fieldcheck.Immutable(c.Handler, old.Handler, handlerPath)...)
}
