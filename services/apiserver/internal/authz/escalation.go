package authz

import (
	"context"
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/component-helpers/auth/rbac/validation"

	"keelson.dev/services/apiserver/internal/authz/rbac"
)

// Guard lets nobody grant more than they have: whoever writes a role must
// hold its rules or the verb "escalate" on it, whoever writes a binding must hold
// the role's rules or the verb "bind" on it.
func (a *Authorizer) Guard(store *genericregistry.Store) {
	store.BeginCreate = func(ctx context.Context, obj runtime.Object, _ *metav1.CreateOptions) (genericregistry.FinishFunc, error) {
		return func(context.Context, bool) {}, a.mayWrite(ctx, obj, nil)
	}
	store.BeginUpdate = func(ctx context.Context, obj, old runtime.Object, _ *metav1.UpdateOptions) (genericregistry.FinishFunc, error) {
		return func(context.Context, bool) {}, a.mayWrite(ctx, obj, old)
	}
}

// grant is what an object gives away, and the verb that allows it regardless.
type grant struct {
	meta     metav1.Object
	resource string // of the role
	role     rbac.Name
	verb     string
	rules    []rbacv1.PolicyRule
}

func (a *Authorizer) mayWrite(ctx context.Context, obj, old runtime.Object) error {
	who, ok := genericapirequest.UserFrom(ctx)
	if !ok || privileged(who) || old != nil && sameGrant(obj, old) {
		return nil
	}
	g := a.grantOf(obj)
	if g.allRegardless(ctx, a, who) {
		return nil
	}
	covered, missing := validation.Covers(a.rules(who, g.meta.GetNamespace()), g.rules)
	if covered {
		return nil
	}
	resource := schema.GroupResource{Group: rbacv1.GroupName, Resource: g.resource}
	return apierrors.NewForbidden(resource, g.meta.GetName(), fmt.Errorf(
		"user %q (groups=%q) is attempting to grant RBAC permissions not currently held:\n%s", who.GetName(), who.GetGroups(), lines(missing)))
}

func (a *Authorizer) grantOf(obj runtime.Object) grant {
	switch o := obj.(type) {
	case *rbacv1.ClusterRole:
		g := grant{o, "clusterroles", nameOf(o), "escalate", o.Rules}
		if o.AggregationRule != nil {
			// The rules will be those of other roles: only who has everything may choose.
			g.rules = everything
		}
		return g
	case *rbacv1.Role:
		return grant{o, "roles", nameOf(o), "escalate", o.Rules}
	case *rbacv1.ClusterRoleBinding:
		return a.grantOfBinding(o, o.RoleRef)
	case *rbacv1.RoleBinding:
		return a.grantOfBinding(o, o.RoleRef)
	}
	panic(fmt.Sprintf("guarding a %T, which is neither role nor binding", obj))
}

func (a *Authorizer) grantOfBinding(meta metav1.Object, ref rbacv1.RoleRef) grant {
	role := rbac.RoleOf(meta.GetNamespace(), ref)
	rules, ok := a.policy.Role(role)
	if !ok {
		// What an unknown role will grant is open, so it counts as everything.
		rules = everything
	}
	return grant{meta, strings.ToLower(ref.Kind) + "s", role, "bind", rules}
}

func (g grant) allRegardless(ctx context.Context, a *Authorizer, who user.Info) bool {
	decision, _, err := a.Authorize(ctx, authorizer.AttributesRecord{
		User: who, Verb: g.verb, Namespace: g.meta.GetNamespace(), APIGroup: rbacv1.GroupName, APIVersion: "*",
		Resource: g.resource, Name: g.role.Name, ResourceRequest: true,
	})
	return err == nil && decision == authorizer.DecisionAllow
}

// sameGrant: an update that leaves rules, reference and subjects alone grants nothing new.
func sameGrant(obj, old runtime.Object) bool {
	switch o := obj.(type) {
	case *rbacv1.ClusterRole:
		was := old.(*rbacv1.ClusterRole)
		return apiequality.Semantic.DeepEqual(o.Rules, was.Rules) && apiequality.Semantic.DeepEqual(o.AggregationRule, was.AggregationRule)
	case *rbacv1.Role:
		return apiequality.Semantic.DeepEqual(o.Rules, old.(*rbacv1.Role).Rules)
	case *rbacv1.ClusterRoleBinding:
		was := old.(*rbacv1.ClusterRoleBinding)
		return o.RoleRef == was.RoleRef && apiequality.Semantic.DeepEqual(o.Subjects, was.Subjects)
	case *rbacv1.RoleBinding:
		was := old.(*rbacv1.RoleBinding)
		return o.RoleRef == was.RoleRef && apiequality.Semantic.DeepEqual(o.Subjects, was.Subjects)
	}
	return false
}

func lines(rules []rbacv1.PolicyRule) string {
	out := make([]string, len(rules))
	for i, r := range rules {
		if len(r.NonResourceURLs) > 0 {
			out[i] = fmt.Sprintf("{NonResourceURLs:%q, Verbs:%q}", r.NonResourceURLs, r.Verbs)
			continue
		}
		out[i] = fmt.Sprintf("{APIGroups:%q, Resources:%q", r.APIGroups, r.Resources)
		if len(r.ResourceNames) > 0 {
			out[i] += fmt.Sprintf(", ResourceNames:%q", r.ResourceNames)
		}
		out[i] += fmt.Sprintf(", Verbs:%q}", r.Verbs)
	}
	return strings.Join(out, "\n")
}
