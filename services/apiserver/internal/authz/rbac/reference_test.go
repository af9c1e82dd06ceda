package rbac

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// reference is a policy without any index: it looks at every binding for every question.
type reference struct {
	roles    map[Name][]rbacv1.PolicyRule
	bindings map[Name]rbacv1.RoleBinding
}

func (r reference) allows(q Request) bool {
	for name, b := range r.bindings {
		if name.Namespace != "" && name.Namespace != q.Namespace {
			continue
		}
		role := Name{Name: b.RoleRef.Name}
		if b.RoleRef.Kind == "Role" {
			role.Namespace = name.Namespace
		}
		if slices.ContainsFunc(b.Subjects, func(s rbacv1.Subject) bool { return is(s, name.Namespace, q) }) &&
			q.AllowedBy(r.roles[role]) {
			return true
		}
	}
	return false
}

func is(s rbacv1.Subject, namespace string, q Request) bool {
	switch s.Kind {
	case "User":
		return q.User == s.Name
	case "Group":
		return slices.Contains(q.Groups, s.Name)
	}
	in := s.Namespace
	if in == "" {
		in = namespace
	}
	return in != "" && q.User == "system:serviceaccount:"+in+":"+s.Name
}

// TestIndex: after any course of changes the index answers as if every binding were looked at.
func TestIndex(t *testing.T) {
	allowed := 0
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 2))
		one := func(of ...string) string { return of[random.IntN(len(of))] }
		name := func() Name { return Name{Namespace: one("", "a", "b"), Name: one("x", "y", "z")} }
		p, r := NewPolicy(), reference{map[Name][]rbacv1.PolicyRule{}, map[Name]rbacv1.RoleBinding{}}
		for range 60 {
			switch n := name(); random.IntN(6) {
			case 0, 1:
				r.roles[n] = []rbacv1.PolicyRule{rule(one("get", "list", "*"), "", one("pods", "secrets", "*"))}
				p.SetRole(n, r.roles[n])
			case 2, 3:
				b := rbacv1.RoleBinding{RoleRef: rbacv1.RoleRef{Kind: one("Role", "ClusterRole"),
					Name: one("x", "y", "z")}}
				for range random.IntN(3) {
					b.Subjects = append(b.Subjects, rbacv1.Subject{Kind: one("User", "Group", "ServiceAccount"),
						Namespace: one("", "a"), Name: one("ann", "bob")})
				}
				r.bindings[n] = b
				p.SetBinding(n, b.RoleRef, b.Subjects)
			case 4:
				delete(r.roles, n)
				p.RemoveRole(n)
			case 5:
				delete(r.bindings, n)
				p.RemoveBinding(n)
			}
			q := Request{User: one("ann", "bob", "system:serviceaccount:a:ann", "system:serviceaccount:b:bob"),
				Groups: []string{one("ann", "bob", "dev")}, Verb: one("get", "list"), Namespace: one("", "a", "b"),
				Resource: one("pods", "secrets")}
			_, got := p.Decide(q)
			if want := r.allows(q); got != want {
				t.Fatalf("seed %d: %+v allowed %v, want %v", seed, q, got, want)
			}
			if got {
				allowed++
			}
		}
	}
	if allowed < 100 {
		t.Errorf("only %d questions were allowed: the test says little", allowed)
	}
}

// TestRequestOf: a request has either a resource or a path.
func TestRequestOf(t *testing.T) {
	who := &user.DefaultInfo{Name: "ann", Groups: []string{"dev"}}
	for name, row := range map[string]struct {
		asked authorizer.AttributesRecord
		want  Request
	}{
		"a resource": {authorizer.AttributesRecord{User: who, Verb: "get", Namespace: "a", APIGroup: "apps",
			Resource: "deployments", Subresource: "scale", Name: "web", ResourceRequest: true, Path: "/apis/apps/v1"},
			Request{User: "ann", Groups: []string{"dev"}, Verb: "get", Namespace: "a", APIGroup: "apps",
				Resource: "deployments", Subresource: "scale", Name: "web"}},
		"a path": {authorizer.AttributesRecord{User: who, Verb: "get", Path: "/healthz"},
			Request{User: "ann", Groups: []string{"dev"}, Verb: "get", Path: "/healthz"}},
	} {
		if got := RequestOf(row.asked); !reflect.DeepEqual(got, row.want) {
			t.Errorf("%s: %+v, want %+v", name, got, row.want)
		}
	}
}

// TestRules: what holds for a user is what holds everywhere, then what holds in the namespace; in each the user's own
// first, then the groups' in their order, by the names of the bindings.
func TestRules(t *testing.T) {
	p := NewPolicy()
	grant := func(binding Name, verb, kind, subject string) {
		role := Name{Name: fmt.Sprint(binding)}
		p.SetRole(role, []rbacv1.PolicyRule{rule(verb, "", "pods")})
		p.SetBinding(binding, rbacv1.RoleRef{Kind: "ClusterRole", Name: role.Name},
			[]rbacv1.Subject{{Kind: kind, Name: subject}})
	}
	grant(Name{Namespace: "a", Name: "a"}, "sixth", "Group", "dev")
	grant(Name{Namespace: "a", Name: "z"}, "fifth", "User", "ann")
	grant(Name{Name: "a"}, "fourth", "Group", "ops")
	grant(Name{Name: "b"}, "third", "Group", "dev")
	grant(Name{Name: "d"}, "second", "User", "ann")
	grant(Name{Name: "c"}, "first", "User", "ann")
	grant(Name{Namespace: "b", Name: "a"}, "elsewhere", "User", "ann")
	verbs := func(namespace string) (out []string) {
		for _, rule := range p.Rules("ann", []string{"dev", "ops"}, namespace) {
			out = append(out, rule.Verbs...)
		}
		return out
	}
	everywhere := []string{"first", "second", "third", "fourth"}
	if got := verbs(""); !slices.Equal(got, everywhere) {
		t.Errorf("everywhere %v, want %v", got, everywhere)
	}
	if got, want := verbs("a"), append(everywhere, "fifth", "sixth"); !slices.Equal(got, want) {
		t.Errorf("in the namespace %v, want %v", got, want)
	}
	// The first that allows is named: it goes into the audit record.
	role, _ := p.Decide(Request{User: "ann", Verb: "second", Resource: "pods"})
	if want := fmt.Sprint(Name{Name: "d"}); role.Name != want {
		t.Errorf("allowed by %v, want %v", role, want)
	}
}

// TestRole: a role is found under its own name and namespace only.
func TestRole(t *testing.T) {
	p := NewPolicy()
	in := Name{Namespace: "a", Name: "r"}
	p.SetRole(in, []rbacv1.PolicyRule{rule("get", "", "pods")})
	if rules, ok := p.Role(in); !ok || len(rules) != 1 {
		t.Errorf("the role is %v, %v", rules, ok)
	}
	for _, other := range []Name{{Name: "r"}, {Namespace: "b", Name: "r"}, {Namespace: "a", Name: "s"}} {
		if rules, ok := p.Role(other); ok {
			t.Errorf("%v is %v", other, rules)
		}
	}
	if got := RoleOf("a", rbacv1.RoleRef{Kind: "Role", Name: "r"}); got != in {
		t.Errorf("a Role of the namespace is %v", got)
	}
	if got := RoleOf("a", rbacv1.RoleRef{Kind: "ClusterRole", Name: "r"}); got != (Name{Name: "r"}) {
		t.Errorf("a ClusterRole is %v", got)
	}
}
