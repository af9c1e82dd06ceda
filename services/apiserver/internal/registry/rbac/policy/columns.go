package policy

import (
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/services/apiserver/internal/registry/table"
	"keelson.dev/services/apiserver/internal/resource"
)

// RoleColumns are what kubectl prints for a kind of role.
func RoleColumns[O resource.Object]() resource.Columns[O] {
	return resource.NewColumns(
		resource.NameColumn[O](),
		resource.Column("Created At", "date", metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"],
			func(role O) any { return role.GetCreationTimestamp().UTC().Format(time.RFC3339) }),
	)
}

// BindingColumns are what kubectl prints for a kind of binding, whose parts the function gives.
func BindingColumns[O resource.Object](parts Parts[O]) resource.Columns[O] {
	names := func(kind string) func(O) any {
		return func(binding O) any {
			_, subjects := parts(binding)
			return subjectNames(subjects, kind)
		}
	}
	role := func(binding O) any {
		ref, _ := parts(binding)
		return ref.Kind + "/" + ref.Name
	}
	return resource.NewColumns(
		resource.NameColumn[O](),
		resource.Column("Role", "string", rbacv1.RoleBinding{}.SwaggerDoc()["roleRef"], role),
		resource.AgeColumn[O](),
		resource.Column("Users", "string", "Users in the binding", names(rbacv1.UserKind)).Wide(),
		resource.Column("Groups", "string", "Groups in the binding", names(rbacv1.GroupKind)).Wide(),
		resource.Column("ServiceAccounts", "string", "ServiceAccounts in the binding",
			names(rbacv1.ServiceAccountKind)).Wide(),
	)
}

func subjectNames(subjects []rbacv1.Subject, kind string) string {
	var names []string
	for _, subject := range subjects {
		switch {
		case subject.Kind != kind:
		case kind == rbacv1.ServiceAccountKind:
			names = append(names, subject.Namespace+"/"+subject.Name)
		default:
			names = append(names, subject.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return table.Joined(names, ", ")
}
