// Package serviceaccount is the resource ServiceAccount of the core group: the identity of Pods. Package tokenrequest
// serves it with its /token.
//
//keelson:decision
package serviceaccount

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"keelson.dev/services/apiserver/internal/resource"
)

// Resource is the ServiceAccount without its /token.
var Resource = resource.Resource[*corev1.ServiceAccount]{
	Name:       "serviceaccounts",
	Singular:   "serviceaccount",
	ShortNames: []string{"sa"},
	New:        func() *corev1.ServiceAccount { return &corev1.ServiceAccount{} },
	NewList:    func() runtime.Object { return &corev1.ServiceAccountList{} },
	Strategy: resource.Strategy[*corev1.ServiceAccount]{
		PrepareForCreate: keepSecretNames,
		PrepareForUpdate: func(sa, _ *corev1.ServiceAccount) { keepSecretNames(sa) },
	},
	Columns: resource.NewColumns(
		resource.NameColumn[*corev1.ServiceAccount](),
		resource.Column("Secrets", "string", corev1.ServiceAccount{}.SwaggerDoc()["secrets"],
			func(sa *corev1.ServiceAccount) any { return int64(len(sa.Secrets)) }),
		resource.AgeColumn[*corev1.ServiceAccount](),
	),
	ReturnDeleted: true,
}

// keepSecretNames reduces the references to Secrets to their names: all are in the account's namespace.
func keepSecretNames(sa *corev1.ServiceAccount) {
	for i := range sa.Secrets {
		sa.Secrets[i] = corev1.ObjectReference{Name: sa.Secrets[i].Name}
	}
}
