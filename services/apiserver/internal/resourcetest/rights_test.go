package resourcetest

import (
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"

	"keelson.dev/services/apiserver/internal/servertest"
)

// grant gives the user of this name a role of this name, and returns when the server knows.
func grant(t *testing.T, s *servertest.Server, name string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	grantTo(t, s, name, rbacv1.Subject{Kind: rbacv1.UserKind, Name: name}, rules...)
}

// grantTo gives a user or an account a role of this name, and returns when the server knows.
func grantTo(t *testing.T, s *servertest.Server, name string, to rbacv1.Subject, rules ...rbacv1.PolicyRule) {
	t.Helper()
	must[*rbacv1.ClusterRole](t, "making a role")(s.Client.RbacV1().ClusterRoles().Create(t.Context(),
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}, metav1.CreateOptions{}))
	must[*rbacv1.ClusterRoleBinding](t, "binding it")(s.Client.RbacV1().ClusterRoleBindings().Create(t.Context(),
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: name}, Subjects: []rbacv1.Subject{to}},
		metav1.CreateOptions{}))
	user := to.Name
	if to.Kind == rbacv1.ServiceAccountKind {
		user = serviceaccount.MakeUsername(to.Namespace, to.Name)
	}
	resource, subresource, _ := strings.Cut(rules[0].Resources[0], "/")
	servertest.AwaitRight(t, s.Client, authorizationv1.SubjectAccessReviewSpec{User: user,
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: rules[0].Verbs[0], Group: rules[0].APIGroups[0],
			Resource: resource, Subresource: subresource}})
}
