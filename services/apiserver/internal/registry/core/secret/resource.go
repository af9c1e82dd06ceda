// Package secret is the resource Secret of the core group.
//
//keelson:decision
package secret

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"keelson.dev/services/apiserver/internal/resource"
)

var help = corev1.Secret{}.SwaggerDoc()

// Resource is the Secret. Its columns never show a value.
var Resource = resource.Resource[*corev1.Secret]{
	Name:     "secrets",
	Singular: "secret",
	New:      func() *corev1.Secret { return &corev1.Secret{} },
	NewList:  func() runtime.Object { return &corev1.SecretList{} },
	Default:  Default,
	Strategy: resource.Strategy[*corev1.Secret]{Validate: Validate, ValidateUpdate: ValidateUpdate},
	Columns: resource.NewColumns(
		resource.NameColumn[*corev1.Secret](),
		resource.Column("Type", "string", help["type"], func(s *corev1.Secret) any { return string(s.Type) }),
		resource.Column("Data", "string", help["data"], func(s *corev1.Secret) any { return int64(len(s.Data)) }),
		resource.AgeColumn[*corev1.Secret](),
	),
	Fields: []resource.Field[*corev1.Secret]{
		{Label: "type", Value: func(s *corev1.Secret) string { return string(s.Type) }},
	},
}
