package escalation

import (
	"errors"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/user"
)

func TestCheck(t *testing.T) {
	pods := func(verbs ...string) []rbacv1.PolicyRule {
		return []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: verbs}}
	}
	bob := &user.DefaultInfo{Name: "bob", Groups: []string{"dev"}}
	unresolved := errors.New("a role is missing")
	for _, row := range []struct {
		name          string
		held, granted []rbacv1.PolicyRule
		unresolved    error
		want          string
	}{
		{"the same", pods("get", "list"), pods("get"), nil, ""},
		{"everything", pods("*"), pods("get", "delete"), nil, ""},
		{"held is enough although not all is known", pods("get"), pods("get"), unresolved, ""},
		{"more", pods("get"), pods("get", "delete"), nil,
			`user "bob" (groups=["dev"]) is attempting to grant RBAC permissions not currently held:` + "\n" +
				`{APIGroups:[""], Resources:["pods"], Verbs:["delete"]}`},
		{"more, and not all is known", nil, pods("get"), unresolved, "resolution errors: a role is missing"},
	} {
		t.Run(row.name, func(t *testing.T) {
			err := Check(bob, row.held, row.granted, row.unresolved)
			switch {
			case row.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)):
				t.Errorf("got %v, want %s", err, row.want)
			}
		})
	}
}
