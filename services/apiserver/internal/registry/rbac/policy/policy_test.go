package policy

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"keelson.dev/kit/fieldcheck/fieldtest"
)

func TestValidateRules(t *testing.T) {
	full := rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"},
		ResourceNames: []string{"a"}}
	paths := rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: []string{"/healthz"}}
	mixed := full
	mixed.NonResourceURLs = paths.NonResourceURLs
	for _, row := range []struct {
		name       string
		rule       rbacv1.PolicyRule
		namespaced bool
		want       []string
	}{
		{"resources", full, true, nil},
		{"URLs", paths, false, nil},
		{"URLs in a namespace", paths, true,
			[]string{"rules[0].nonResourceURLs: Invalid value: [\"/healthz\"]: namespaced rules cannot apply to " +
				"non-resource URLs"}},
		{"both", mixed, false,
			[]string{"rules[0].nonResourceURLs: Invalid value: [\"/healthz\"]: rules cannot apply to both regular " +
				"resources and non-resource URLs"}},
		{"nothing", rbacv1.PolicyRule{}, true,
			[]string{"rules[0].verbs: Required value: verbs must contain at least one value",
				"rules[0].apiGroups: Required value: resource rules must supply at least one api group",
				"rules[0].resources: Required value: resource rules must supply at least one resource"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			fieldtest.Check(t, ValidateRules([]rbacv1.PolicyRule{row.rule}, row.namespaced), row.want...)
		})
	}
}

func TestValidateBinding(t *testing.T) {
	role := rbacv1.RoleRef{Kind: "ClusterRole", Name: "system:view"}
	for _, row := range []struct {
		name       string
		ref        rbacv1.RoleRef
		subject    rbacv1.Subject
		namespaced bool
		want       []string
	}{
		{"a user", role, rbacv1.Subject{Kind: "User", Name: "ann"}, false, nil},
		{"a group", role, rbacv1.Subject{Kind: "Group", Name: "system:nodes"}, false, nil},
		{"an account", role, rbacv1.Subject{Kind: "ServiceAccount", Name: "bot", Namespace: "a"}, false, nil},
		{"an account of nowhere", role, rbacv1.Subject{Kind: "ServiceAccount", Name: "bot"}, false,
			[]string{"subjects[0].namespace: Required value"}},
		{"an account of the binding's namespace", role, rbacv1.Subject{Kind: "ServiceAccount", Name: "bot"}, true, nil},
		{"a bad account", role, rbacv1.Subject{Kind: "ServiceAccount", Name: "Bot", Namespace: "a", APIGroup: "x"},
			true,
			[]string{`subjects[0].name: Invalid value: "Bot"`, `subjects[0].apiGroup: Unsupported value: "x"`}},
		{"nobody", role, rbacv1.Subject{Kind: "User"}, true, []string{"subjects[0].name: Required value"}},
		{"an unknown kind", role, rbacv1.Subject{Kind: "Robot", Name: "a"}, true,
			[]string{
				`subjects[0].kind: Unsupported value: "Robot": supported values: "Group", "ServiceAccount", "User"`}},
		{"a user of another group", role, rbacv1.Subject{Kind: "User", Name: "a", APIGroup: "x"}, true,
			[]string{`subjects[0].apiGroup: Unsupported value: "x"`}},
		{"a Role in a namespace", rbacv1.RoleRef{Kind: "Role", Name: "a"}, rbacv1.Subject{Kind: "User", Name: "ann"},
			true, nil},
		{"a Role for the cluster", rbacv1.RoleRef{Kind: "Role", Name: "a"}, rbacv1.Subject{Kind: "User", Name: "ann"},
			false, []string{`roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"`}},
		{"a bad role", rbacv1.RoleRef{Kind: "ClusterRole", Name: "a/b", APIGroup: "x"},
			rbacv1.Subject{Kind: "User", Name: "ann"}, true,
			[]string{`roleRef.name: Invalid value: "a/b"`, `roleRef.apiGroup: Unsupported value: "x"`}},
		{"no role", rbacv1.RoleRef{Kind: "ClusterRole"}, rbacv1.Subject{Kind: "User", Name: "ann"}, true,
			[]string{"roleRef.name: Required value"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			subjects := []rbacv1.Subject{row.subject}
			DefaultBinding(&row.ref, subjects)
			fieldtest.Check(t, ValidateBinding(row.ref, subjects, row.namespaced), row.want...)
		})
	}
	fieldtest.Check(t, ValidateBindingUpdate(role, role))
	fieldtest.Check(t, ValidateBindingUpdate(rbacv1.RoleRef{Kind: "ClusterRole", Name: "edit"}, role),
		"roleRef: Invalid value: ")
}
