package policy

import (
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/services/apiserver/internal/registry/rest"
	"keelson.dev/services/apiserver/internal/registry/table"
)

// RoleColumns are what kubectl prints for a kind of role.
func RoleColumns[O rest.Object]() rest.Columns[O] {
	return rest.Columns[O]{
		Definitions: []metav1.TableColumnDefinition{
			rest.NameColumn(),
			rest.Column("Created At", "date", metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"]),
		},
		Row: func(role O, _ time.Time) []any {
			return []any{role.GetName(), role.GetCreationTimestamp().UTC().Format(time.RFC3339)}
		},
	}
}

// BindingColumns are what kubectl prints for a kind of binding, whose parts the function gives.
func BindingColumns[O rest.Object](parts Parts[O]) rest.Columns[O] {
	return rest.Columns[O]{
		Definitions: []metav1.TableColumnDefinition{
			rest.NameColumn(),
			rest.Column("Role", "string", rbacv1.RoleBinding{}.SwaggerDoc()["roleRef"]),
			rest.AgeColumn(),
			rest.WideColumn("Users", "string", "Users in the binding"),
			rest.WideColumn("Groups", "string", "Groups in the binding"),
			rest.WideColumn("ServiceAccounts", "string", "ServiceAccounts in the binding"),
		},
		Row: func(binding O, now time.Time) []any {
			ref, subjects := parts(binding)
			return []any{
				binding.GetName(), ref.Kind + "/" + ref.Name, rest.Age(binding.GetCreationTimestamp(), now),
				subjectNames(subjects, rbacv1.UserKind), subjectNames(subjects, rbacv1.GroupKind),
				subjectNames(subjects, rbacv1.ServiceAccountKind),
			}
		},
	}
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
