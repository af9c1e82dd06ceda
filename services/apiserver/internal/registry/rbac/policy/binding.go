package policy

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/services/apiserver/internal/resource"
)

// Parts returns what a kind of binding connects. What it returns is the object's own.
type Parts[O resource.Object] func(O) (*rbacv1.RoleRef, []rbacv1.Subject)

// BindingStrategy is how a kind of binding is checked.
func BindingStrategy[O resource.Object](parts Parts[O], namespaced bool) resource.Strategy[O] {
	validate := func(b O) field.ErrorList {
		ref, subjects := parts(b)
		return ValidateBinding(*ref, subjects, namespaced)
	}
	return resource.Strategy[O]{
		Name:     resource.PathSegmentName,
		Validate: validate,
		ValidateUpdate: func(b, old O) field.ErrorList {
			ref, _ := parts(b)
			oldRef, _ := parts(old)
			return append(validate(b), ValidateBindingUpdate(*ref, *oldRef)...)
		},
		CreateOnUpdate: true,
	}
}
