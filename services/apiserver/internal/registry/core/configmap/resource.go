// Package configmap is the resource ConfigMap of the core group.
//
//keelson:decision
package configmap

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"keelson.dev/services/apiserver/internal/resource"
)

// Resource is the ConfigMap.
var Resource = resource.Resource[*corev1.ConfigMap]{
	Name:       "configmaps",
	Singular:   "configmap",
	ShortNames: []string{"cm"},
	New:        func() *corev1.ConfigMap { return &corev1.ConfigMap{} },
	NewList:    func() runtime.Object { return &corev1.ConfigMapList{} },
	Strategy:   resource.Strategy[*corev1.ConfigMap]{Validate: Validate, ValidateUpdate: ValidateUpdate},
	Columns: resource.NewColumns(
		resource.NameColumn[*corev1.ConfigMap](),
		resource.Column("Data", "string", corev1.ConfigMap{}.SwaggerDoc()["data"],
			func(c *corev1.ConfigMap) any { return int64(len(c.Data) + len(c.BinaryData)) }),
		resource.AgeColumn[*corev1.ConfigMap](),
	),
}
