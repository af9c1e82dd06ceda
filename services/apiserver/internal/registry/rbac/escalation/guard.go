// Package escalation serves the roles and bindings of group rbac.authorization.k8s.io behind a guard: a user cannot
// grant rights that the user does not have.
package escalation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericrest "k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/component-helpers/auth/rbac/validation"

	"keelson.dev/services/apiserver/internal/registry/rbac/policy"
	"keelson.dev/services/apiserver/internal/registry/rest"
	"keelson.dev/services/apiserver/internal/resource"
)

// Authority answers what users may do; the RBAC authorizer gives it.
type Authority interface {
	authorizer.Authorizer
	// UserRules returns the rules that hold for the user in the namespace, or for the whole cluster if it is empty.
	// With an error it returns those that it could resolve.
	UserRules(ctx context.Context, u user.Info, namespace string) ([]rbacv1.PolicyRule, error)
	// RoleRules returns the rules of the role that a binding in the namespace refers to.
	RoleRules(ctx context.Context, ref rbacv1.RoleRef, namespace string) ([]rbacv1.PolicyRule, error)
}

// Grant is what an object would allow its subjects to do.
type Grant struct {
	// Rules are what is granted.
	Rules []rbacv1.PolicyRule
	// Bound is the role that is handed out, if the object is a binding.
	Bound *rbacv1.RoleRef
}

// Guard keeps users from granting what they do not have: it stands before the storage of a role or binding.
// Members of system:masters pass, and so does who is allowed the verb escalate on the role, or bind on the role bound.
type Guard[O resource.Object] struct {
	*rest.Storage
	resource  schema.GroupResource
	authority Authority
	grant     func(context.Context, O) (Grant, error)
	unchanged func(obj, old O) bool
}

var _ genericrest.CreaterUpdater = &Guard[resource.Object]{}

// GuardRole puts the guard before a kind of role. unchanged tells that an update grants nothing new.
func GuardRole[O resource.Object](
	r resource.Resource[O], authority Authority, rules func(O) []rbacv1.PolicyRule, unchanged func(obj, old O) bool,
) rest.Entry {
	return guarded(r, Guard[O]{
		authority: authority, unchanged: unchanged,
		grant: func(_ context.Context, obj O) (Grant, error) { return Grant{Rules: rules(obj)}, nil },
	})
}

// GuardBinding puts the guard before a kind of binding.
func GuardBinding[O resource.Object](r resource.Resource[O], authority Authority, parts policy.Parts[O]) rest.Entry {
	return guarded(r, Guard[O]{
		authority: authority,
		unchanged: func(obj, old O) bool {
			ref, subjects := parts(obj)
			oldRef, oldSubjects := parts(old)
			return *ref == *oldRef && equality.Semantic.DeepEqual(subjects, oldSubjects)
		},
		grant: func(ctx context.Context, obj O) (Grant, error) {
			ref, _ := parts(obj)
			rules, err := authority.RoleRules(ctx, *ref, obj.GetNamespace())
			return Grant{Rules: rules, Bound: ref}, err
		},
	})
}

func guarded[O resource.Object](r resource.Resource[O], guard Guard[O]) rest.Entry {
	guard.resource = r.GroupResource()
	return rest.ServeWrapped(r, func(s *rest.Storage) genericrest.Storage {
		opened := guard
		opened.Storage = s
		return &opened
	})
}

// Create stores the object if its writer may grant what it grants.
func (g *Guard[O]) Create(ctx context.Context, obj runtime.Object, validate genericrest.ValidateObjectFunc,
	options *metav1.CreateOptions) (runtime.Object, error) {
	if err := g.check(ctx, obj.(O)); err != nil {
		return nil, err
	}
	return g.Storage.Create(ctx, obj, validate, options)
}

// Update changes the object if its writer may grant what it then grants.
func (g *Guard[O]) Update(ctx context.Context, name string, info genericrest.UpdatedObjectInfo,
	createValidation genericrest.ValidateObjectFunc, updateValidation genericrest.ValidateObjectUpdateFunc,
	forceAllowCreate bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	checked := genericrest.WrapUpdatedObjectInfo(info, func(ctx context.Context, updated,
		existing runtime.Object) (runtime.Object, error) {
		obj := updated.(O)
		if old, ok := existing.(O); ok && old.GetUID() != "" && g.unchanged(obj, old) {
			return updated, nil
		}
		return updated, g.check(ctx, obj)
	})
	return g.Storage.Update(ctx, name, checked, createValidation, updateValidation, forceAllowCreate, options)
}

func (g *Guard[O]) check(ctx context.Context, obj O) error {
	u, ok := request.UserFrom(ctx)
	if !ok {
		return apierrors.NewForbidden(g.resource, obj.GetName(), errors.New("no user on request"))
	}
	if slices.Contains(u.GetGroups(), user.SystemPrivilegedGroup) {
		return nil
	}
	namespace := request.NamespaceValue(ctx)
	grant, err := g.grant(ctx, obj)
	if g.exempt(ctx, u, namespace, obj.GetName(), grant.Bound) {
		return nil
	}
	if err != nil {
		return apierrors.NewForbidden(g.resource, obj.GetName(), err)
	}
	held, err := g.authority.UserRules(ctx, u, namespace)
	if err := Check(u, held, grant.Rules, err); err != nil {
		return apierrors.NewForbidden(g.resource, obj.GetName(), err)
	}
	return nil
}

// exempt asks whether the user holds the verb that allows granting without having.
func (g *Guard[O]) exempt(ctx context.Context, u user.Info, namespace, name string, bound *rbacv1.RoleRef) bool {
	attributes := authorizer.AttributesRecord{
		User: u, Verb: "escalate", Namespace: namespace, Name: name,
		APIGroup: g.resource.Group, APIVersion: "*", Resource: g.resource.Resource, ResourceRequest: true,
	}
	if bound != nil {
		attributes.Verb, attributes.Name, attributes.Resource = "bind", bound.Name, strings.ToLower(bound.Kind)+"s"
	}
	decision, _, err := g.authority.Authorize(ctx, attributes)
	return err == nil && decision == authorizer.DecisionAllow
}

// Check returns an error that names the rules granted but not held. unresolved is why the held rules may be
// incomplete.
func Check(u user.Info, held, granted []rbacv1.PolicyRule, unresolved error) error {
	covered, missing := validation.Covers(held, granted)
	if covered {
		return nil
	}
	lines := make([]string, 0, len(missing))
	for _, rule := range missing {
		lines = append(lines, describe(rule))
	}
	slices.Sort(lines)
	message := fmt.Sprintf("user %q (groups=%q) is attempting to grant RBAC permissions not currently held:\n%s",
		u.GetName(), u.GetGroups(), strings.Join(slices.Compact(lines), "\n"))
	if unresolved != nil {
		return fmt.Errorf("%s; resolution errors: %w", message, unresolved)
	}
	return errors.New(message)
}

func describe(rule rbacv1.PolicyRule) string {
	var parts []string
	for _, part := range []struct {
		name   string
		values []string
	}{
		{"APIGroups", rule.APIGroups},
		{"Resources", rule.Resources},
		{"NonResourceURLs", rule.NonResourceURLs},
		{"ResourceNames", rule.ResourceNames},
		{"Verbs", rule.Verbs},
	} {
		if len(part.values) > 0 {
			parts = append(parts, fmt.Sprintf("%s:%q", part.name, part.values))
		}
	}
	return "{" + strings.Join(parts, ", ") + "}"
}
