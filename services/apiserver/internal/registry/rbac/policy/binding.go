package policy

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/services/apiserver/internal/registry/rest"
)

// Parts returns what a kind of binding connects. What it returns is the object's own.
type Parts[O rest.Object] func(O) (*rbacv1.RoleRef, []rbacv1.Subject)

// BindingStrategy is how a kind of binding is checked.
func BindingStrategy[O rest.Object](parts Parts[O], namespaced bool) rest.Strategy[O] {
	validate := func(b O) field.ErrorList {
		ref, subjects := parts(b)
		return ValidateBinding(*ref, subjects, namespaced)
	}
	return rest.Strategy[O]{
		Name:     rest.PathSegmentName,
		Validate: validate,
		ValidateUpdate: func(b, old O) field.ErrorList {
			ref, _ := parts(b)
			oldRef, _ := parts(old)
			return append(validate(b), ValidateBindingUpdate(*ref, *oldRef)...)
		},
		CreateOnUpdate: true,
	}
}
