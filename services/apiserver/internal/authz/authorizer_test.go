package authz

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"keelson.dev/services/apiserver/internal/authz/node"
	"keelson.dev/services/apiserver/internal/authz/rbac"
)

// TestNobodyIsRefusedByHalfAPolicy: while roles are being read, who may is let through and who does not seem to waits.
func TestNobodyIsRefusedByHalfAPolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		policy := rbac.NewPolicy()
		a, err := NewAuthorizer(policy, node.Objects{})
		if err != nil {
			t.Fatal(err)
		}
		grant(policy, "early")
		given := map[string]string{}
		answers := make(chan [2]string)
		ask := func(ctx context.Context, name string, groups ...string) {
			go func() { answers <- [2]string{name, answer(ctx, a, name, groups...)} }()
		}
		leaving, leave := context.WithCancel(t.Context())
		ask(t.Context(), "root", user.SystemPrivilegedGroup)
		ask(t.Context(), "early")
		ask(t.Context(), "late")
		ask(t.Context(), "never")
		ask(leaving, "impatient")
		collect := func(n int) {
			t.Helper()
			for range n {
				got := <-answers
				given[got[0]] = got[1]
			}
			synctest.Wait()
		}
		collect(2)
		if given["root"] != "allowed" || given["early"] != "allowed" {
			t.Errorf("before all roles are read: %v, want root and early allowed and nobody else answered", given)
		}
		leave()
		collect(1)
		if given["impatient"] != "gone" {
			t.Errorf("who left was told %q", given["impatient"])
		}
		grant(policy, "late")
		a.PolicyIsComplete()
		collect(2)
		if given["late"] != "allowed" || given["never"] != "refused" {
			t.Errorf("after all roles are read: %v, want late allowed and never refused", given)
		}
		if got := answer(t.Context(), a, "nobody"); got != "refused" {
			t.Errorf("afterwards nobody is %s, want refused at once", got)
		}
	})
}

// grant lets a user list Pods.
func grant(policy *rbac.Policy, name string) {
	policy.SetRole(rbac.Name{Name: name}, []rbacv1.PolicyRule{{Verbs: []string{"list"}, APIGroups: []string{""},
		Resources: []string{"pods"}}})
	role := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
	policy.SetBinding(rbac.Name{Name: name}, role,
		[]rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}})
}

// answer is what the user is told who wants to list Pods.
func answer(ctx context.Context, a *Authorizer, name string, groups ...string) string {
	decision, _, err := a.Authorize(ctx, authorizer.AttributesRecord{
		User: &user.DefaultInfo{Name: name, Groups: groups}, Verb: "list", Resource: "pods", ResourceRequest: true})
	switch {
	case errors.Is(err, context.Canceled):
		return "gone"
	case err != nil:
		return err.Error()
	case decision == authorizer.DecisionAllow:
		return "allowed"
	default:
		return "refused"
	}
}
