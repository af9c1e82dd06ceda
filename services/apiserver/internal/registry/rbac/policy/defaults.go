package policy

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"keelson.dev/kit/defaults"
)

// DefaultBinding fills in the API groups that a binding leaves out.
func DefaultBinding(ref *rbacv1.RoleRef, subjects []rbacv1.Subject) {
	defaults.Set(&ref.APIGroup, rbacv1.GroupName)
	for i := range subjects {
		subject := &subjects[i]
		if subject.Kind == rbacv1.UserKind || subject.Kind == rbacv1.GroupKind {
			defaults.Set(&subject.APIGroup, rbacv1.GroupName)
		}
	}
}
