package rbac

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

func rule(verbs, groups, resources string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: []string{verbs}, APIGroups: []string{groups}, Resources: []string{resources},
		ResourceNames: names}
}

func TestDecide(t *testing.T) {
	p := NewPolicy()
	p.SetRole(Name{Name: "reader"}, []rbacv1.PolicyRule{rule("get", "", "pods"), rule("get", "", "pods/log"),
		rule("list", "*", "*")})
	p.SetRole(Name{Name: "scaler"}, []rbacv1.PolicyRule{rule("update", "*", "*/scale")})
	p.SetRole(Name{Namespace: "a", Name: "one"}, []rbacv1.PolicyRule{rule("*", "apps", "deployments", "web")})
	p.SetRole(Name{Name: "paths"}, []rbacv1.PolicyRule{{Verbs: []string{"get"}, NonResourceURLs: []string{"/healthz",
		"/api/*"}}})
	p.SetBinding(Name{Name: "readers"}, rbacv1.RoleRef{Kind: "ClusterRole", Name: "reader"},
		[]rbacv1.Subject{{Kind: "Group", Name: "dev"}, {Kind: "User", Name: "ann"}})
	p.SetBinding(Name{Name: "paths"}, rbacv1.RoleRef{Kind: "ClusterRole", Name: "paths"},
		[]rbacv1.Subject{{Kind: "User", Name: "ann"}})
	p.SetBinding(Name{Namespace: "a", Name: "one"}, rbacv1.RoleRef{Kind: "Role", Name: "one"},
		[]rbacv1.Subject{{Kind: "ServiceAccount", Name: "bot"}})
	p.SetBinding(Name{Namespace: "a", Name: "scale"}, rbacv1.RoleRef{Kind: "ClusterRole", Name: "scaler"},
		[]rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "b", Name: "bot"}})
	p.SetBinding(Name{Name: "dangling"}, rbacv1.RoleRef{Kind: "ClusterRole", Name: "missing"},
		[]rbacv1.Subject{{Kind: "User", Name: "eve"}})

	rows := []struct {
		name    string
		request Request
		allowed bool
	}{
		{"user of a cluster binding", Request{User: "ann", Verb: "get", Namespace: "a", Resource: "pods", Name: "x"},
			true},
		{"group of a cluster binding", Request{User: "bob", Groups: []string{"dev"}, Verb: "get", Resource: "pods"},
			true},
		{"other verb", Request{User: "ann", Verb: "delete", Namespace: "a", Resource: "pods"}, false},
		{"named subresource", Request{User: "ann", Verb: "get", Namespace: "a", Resource: "pods", Subresource: "log"},
			true},
		{"resource does not cover subresources", Request{User: "ann", Verb: "get", Namespace: "a", Resource: "pods",
			Subresource: "exec"}, false},
		{"everything", Request{User: "ann", Verb: "list", APIGroup: "apps", Resource: "deployments",
			Subresource: "status"}, true},
		{"a user is not the group of that name", Request{User: "dev", Verb: "get", Resource: "pods"}, false},
		{"service account of the binding's namespace", Request{User: "system:serviceaccount:a:bot", Verb: "patch",
			Namespace: "a", APIGroup: "apps", Resource: "deployments", Name: "web"}, true},
		{"other name", Request{User: "system:serviceaccount:a:bot", Verb: "patch", Namespace: "a", APIGroup: "apps",
			Resource: "deployments", Name: "db"}, false},
		{"names do not cover a list", Request{User: "system:serviceaccount:a:bot", Verb: "list", Namespace: "a",
			APIGroup: "apps", Resource: "deployments"}, false},
		{"other namespace", Request{User: "system:serviceaccount:a:bot", Verb: "get", Namespace: "b", APIGroup: "apps",
			Resource: "deployments", Name: "web"}, false},
		{"all namespaces at once", Request{User: "system:serviceaccount:a:bot", Verb: "get", APIGroup: "apps",
			Resource: "deployments", Name: "web"}, false},
		{"subresource of everything", Request{User: "system:serviceaccount:b:bot", Verb: "update", Namespace: "a",
			APIGroup: "apps", Resource: "deployments", Subresource: "scale"}, true},
		{"not the resource itself", Request{User: "system:serviceaccount:b:bot", Verb: "update", Namespace: "a",
			APIGroup: "apps", Resource: "deployments"}, false},
		{"path", Request{User: "ann", Verb: "get", Path: "/healthz"}, true},
		{"path below a prefix", Request{User: "ann", Verb: "get", Path: "/api/v1"}, true},
		{"longer path", Request{User: "ann", Verb: "get", Path: "/healthz/etcd"}, false},
		{"missing role", Request{User: "eve", Verb: "get", Resource: "pods"}, false},
		{"nobody", Request{Verb: "get", Resource: "pods"}, false},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			if _, got := p.Decide(row.request); got != row.allowed {
				t.Errorf("allowed = %v, want %v", got, row.allowed)
			}
		})
	}
}

func TestChangesTakeEffect(t *testing.T) {
	p := NewPolicy()
	get := Request{User: "ann", Verb: "get", Namespace: "a", Resource: "pods"}
	allowed := func(want bool, when string) {
		t.Helper()
		if _, got := p.Decide(get); got != want {
			t.Errorf("%s: allowed = %v, want %v", when, got, want)
		}
	}
	binding := Name{Namespace: "a", Name: "b"}
	ref := rbacv1.RoleRef{Kind: "ClusterRole", Name: "r"}
	p.SetBinding(binding, ref, []rbacv1.Subject{{Kind: "User", Name: "ann"}})
	allowed(false, "binding before its role")
	p.SetRole(Name{Name: "r"}, []rbacv1.PolicyRule{rule("get", "", "pods")})
	allowed(true, "role added")
	p.SetBinding(binding, ref, []rbacv1.Subject{{Kind: "User", Name: "bob"}})
	allowed(false, "subject replaced")
	p.SetBinding(binding, ref, []rbacv1.Subject{{Kind: "User", Name: "bob"}, {Kind: "User", Name: "ann"}})
	allowed(true, "subject added")
	p.RemoveRole(Name{Name: "r"})
	allowed(false, "role removed")
	p.SetRole(Name{Name: "r"}, []rbacv1.PolicyRule{rule("get", "", "pods")})
	p.RemoveBinding(binding)
	allowed(false, "binding removed")
	if len(p.grants) != 0 || len(p.bindings) != 0 {
		t.Errorf("removed bindings leave %v, %v behind", p.grants, p.bindings)
	}
}

func BenchmarkDecideAmongManyBindings(b *testing.B) {
	p := NewPolicy()
	p.SetRole(Name{Name: "r"}, []rbacv1.PolicyRule{rule("get", "", "pods")})
	for i := range 10_000 {
		user := string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676))
		p.SetBinding(Name{Name: user}, rbacv1.RoleRef{Kind: "ClusterRole", Name: "r"},
			[]rbacv1.Subject{{Kind: "User", Name: user}})
	}
	request := Request{User: "aaa", Groups: []string{"system:authenticated"}, Verb: "get", Namespace: "x",
		Resource: "pods"}
	for b.Loop() {
		p.Decide(request)
	}
}
