package clusterrolebinding

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/services/apiserver/internal/registry/rbac/policy"
	"keelson.dev/services/apiserver/internal/registry/rest"
)

var strategy = rest.Strategy[*rbacv1.ClusterRoleBinding]{
	ClusterScoped:  true,
	Name:           policy.Name,
	Validate:       Validate,
	ValidateUpdate: ValidateUpdate,
	CreateOnUpdate: true,
}

// Default fills in the API groups that a ClusterRoleBinding leaves out.
func Default(b *rbacv1.ClusterRoleBinding) { policy.DefaultBinding(&b.RoleRef, b.Subjects) }

// Validate returns what is wrong with a ClusterRoleBinding.
func Validate(b *rbacv1.ClusterRoleBinding) field.ErrorList {
	return policy.ValidateBinding(b.RoleRef, b.Subjects, false)
}

// ValidateUpdate returns what is wrong with b as the successor of old.
func ValidateUpdate(b, old *rbacv1.ClusterRoleBinding) field.ErrorList {
	return append(Validate(b), policy.ValidateBindingUpdate(b.RoleRef, old.RoleRef)...)
}

func parts(b *rbacv1.ClusterRoleBinding) (rbacv1.RoleRef, []rbacv1.Subject) {
	return b.RoleRef, b.Subjects
}

func grantsTheSame(b, old *rbacv1.ClusterRoleBinding) bool {
	return b.RoleRef == old.RoleRef && equality.Semantic.DeepEqual(b.Subjects, old.Subjects)
}
