package authz

import (
	"fmt"
	"testing"

	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/user"

	"keelson.dev/services/apiserver/internal/authz/node"
	"keelson.dev/services/apiserver/internal/authz/rbac"
)

// configured are authorizers as a file has them.
func configured(types ...apiserver.AuthorizerType) *apiserver.AuthorizationConfiguration {
	c := &apiserver.AuthorizationConfiguration{}
	for i, t := range types {
		c.Authorizers = append(c.Authorizers, apiserver.AuthorizerConfiguration{Type: t, Name: fmt.Sprint("a", i)})
	}
	return c
}

// TestTheOrderOfAuthorizers: the first with an opinion decides, but for members of system:masters.
func TestTheOrderOfAuthorizers(t *testing.T) {
	policy := rbac.NewPolicy()
	grant(policy, "ann")
	node7 := func(a *Authorizer) string { return answer(t.Context(), a, "system:node:n7", "system:nodes") }
	by := func(name string, groups ...string) func(*Authorizer) string {
		return func(a *Authorizer) string { return answer(t.Context(), a, name, groups...) }
	}
	for _, row := range []struct {
		types []apiserver.AuthorizerType
		who   func(*Authorizer) string
		want  string
	}{
		{[]apiserver.AuthorizerType{"RBAC"}, by("ann"), "allowed"},
		{[]apiserver.AuthorizerType{"RBAC"}, by("bob"), "refused"},
		{[]apiserver.AuthorizerType{"RBAC", "AlwaysDeny"}, by("ann"), "allowed"},
		{[]apiserver.AuthorizerType{"AlwaysDeny", "RBAC"}, by("ann"), "allowed"},
		{[]apiserver.AuthorizerType{"AlwaysDeny"}, by("root", user.SystemPrivilegedGroup), "allowed"},
		{[]apiserver.AuthorizerType{"RBAC", "AlwaysAllow"}, by("bob"), "allowed"},
		{[]apiserver.AuthorizerType{"AlwaysAllow"}, by(user.Anonymous, user.AllUnauthenticated), "refused"},
		{[]apiserver.AuthorizerType{"Node"}, by("ann"), "refused"},
		{[]apiserver.AuthorizerType{"Node", "RBAC"}, by("ann"), "allowed"},
		{[]apiserver.AuthorizerType{"RBAC"}, node7, "refused"},
	} {
		a, err := NewAuthorizer(policy, node.Objects{})
		if err != nil {
			t.Fatal(err)
		}
		a.PolicyIsComplete()
		if err := a.Use(configured(row.types...)); err != nil {
			t.Fatal(err)
		}
		if got := row.who(a); got != row.want {
			t.Errorf("%v: %s, want %s", row.types, got, row.want)
		}
	}
}

// TestWhatCannotBeUsed: the authorizers of before decide on.
func TestWhatCannotBeUsed(t *testing.T) {
	policy := rbac.NewPolicy()
	grant(policy, "ann")
	a, err := NewAuthorizer(policy, node.Objects{})
	if err != nil {
		t.Fatal(err)
	}
	a.PolicyIsComplete()
	missing := configured("AlwaysDeny", "Webhook")
	missing.Authorizers[1].Webhook = &apiserver.WebhookConfiguration{
		ConnectionInfo: apiserver.WebhookConnectionInfo{KubeConfigFile: new("/nowhere")}}
	if err := a.Use(missing); err == nil || err.Error() !=
		"authorizers[1]: stat /nowhere: no such file or directory" {
		t.Errorf("without a kubeconfig: %v", err)
	}
	if err := a.Use(configured("ABAC")); err == nil {
		t.Error("an unknown type is used")
	}
	if got := answer(t.Context(), a, "ann"); got != "allowed" {
		t.Errorf("ann is %s by what was before", got)
	}
}

// TestRulesOfAllAuthorizers: who asks for his rules is told those that each authorizer of the chain knows of.
func TestRulesOfAllAuthorizers(t *testing.T) {
	policy := rbac.NewPolicy()
	grant(policy, "ann")
	ann := &user.DefaultInfo{Name: "ann"}
	ofNode := &user.DefaultInfo{Name: "system:node:n7", Groups: []string{"system:nodes"}}
	for _, row := range []struct {
		types      []apiserver.AuthorizerType
		who        user.Info
		rules      int
		incomplete bool
	}{
		{[]apiserver.AuthorizerType{"Node", "RBAC"}, ann, 1, false},
		{[]apiserver.AuthorizerType{"Node"}, ann, 0, false},
		{[]apiserver.AuthorizerType{"RBAC", "AlwaysAllow"}, ann, 2, false},
		{[]apiserver.AuthorizerType{"AlwaysAllow"}, &user.DefaultInfo{Name: user.Anonymous}, 0, false},
		{[]apiserver.AuthorizerType{"RBAC"}, ofNode, 0, false},
		{[]apiserver.AuthorizerType{"Node", "RBAC"}, ofNode, len(node.Rules), true},
		{[]apiserver.AuthorizerType{"Node", "RBAC"},
			&user.DefaultInfo{Name: "root", Groups: []string{user.SystemPrivilegedGroup}}, 1, false},
	} {
		a, err := NewAuthorizer(policy, node.Objects{})
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Use(configured(row.types...)); err != nil {
			t.Fatal(err)
		}
		resources, _, incomplete, err := a.RulesFor(t.Context(), row.who, "default")
		if err != nil || len(resources) != row.rules || incomplete != row.incomplete {
			t.Errorf("%v, %s: %d rules, incomplete %v, %v, want %d, %v", row.types, row.who.GetName(), len(resources),
				incomplete, err, row.rules, row.incomplete)
		}
	}
}
