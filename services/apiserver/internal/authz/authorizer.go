// Package authz answers whether a request is allowed: always for
// system:masters, else by RBAC. Its informers keep the roles in memory.
package authz

import (
	"context"
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"keelson.dev/services/apiserver/internal/authz/rbac"
)

// Authorizer decides by a policy. It is also the resolver of a user's rules.
type Authorizer struct{ policy *rbac.Policy }

var (
	_ authorizer.Authorizer   = &Authorizer{}
	_ authorizer.RuleResolver = &Authorizer{}
)

// NewAuthorizer returns an authorizer over a policy that changes under it.
func NewAuthorizer(policy *rbac.Policy) *Authorizer { return &Authorizer{policy} }

// Authorize implements authorizer.Authorizer. It allows or has no opinion.
func (a *Authorizer) Authorize(_ context.Context, r authorizer.Attributes) (authorizer.Decision, string, error) {
	who := r.GetUser()
	if who == nil {
		return authorizer.DecisionNoOpinion, "no user on request", nil
	}
	if privileged(who) {
		return authorizer.DecisionAllow, "", nil
	}
	if role, ok := a.policy.Decide(requestOf(who, r)); ok {
		return authorizer.DecisionAllow, "RBAC: allowed by " + roleText(role), nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// ConditionsAwareAuthorize implements authorizer.Authorizer; RBAC knows no conditions.
func (a *Authorizer) ConditionsAwareAuthorize(ctx context.Context, r authorizer.Attributes) authorizer.ConditionsAwareDecision {
	return authorizer.ConditionsAwareDecisionFromParts(a.Authorize(ctx, r))
}

// EvaluateConditions implements authorizer.Authorizer; RBAC knows no conditions.
func (a *Authorizer) EvaluateConditions(context.Context, authorizer.ConditionsAwareDecision, authorizer.ConditionsData) (authorizer.Decision, string, error) {
	return authorizer.DecisionDeny, "", authorizer.ErrorConditionEvaluationNotSupported
}

// RulesFor implements authorizer.RuleResolver.
func (a *Authorizer) RulesFor(_ context.Context, who user.Info, namespace string) ([]authorizer.ResourceRuleInfo, []authorizer.NonResourceRuleInfo, bool, error) {
	var resources []authorizer.ResourceRuleInfo
	var paths []authorizer.NonResourceRuleInfo
	for _, rule := range a.rules(who, namespace) {
		if len(rule.Resources) > 0 {
			resources = append(resources, &authorizer.DefaultResourceRuleInfo{
				Verbs: rule.Verbs, APIGroups: rule.APIGroups, Resources: rule.Resources, ResourceNames: rule.ResourceNames,
			})
		}
		if len(rule.NonResourceURLs) > 0 {
			paths = append(paths, &authorizer.DefaultNonResourceRuleInfo{Verbs: rule.Verbs, NonResourceURLs: rule.NonResourceURLs})
		}
	}
	return resources, paths, false, nil
}

// UserRules are the rules that hold for the user in namespace.
func (a *Authorizer) UserRules(_ context.Context, who user.Info, namespace string) ([]rbacv1.PolicyRule, error) {
	return a.rules(who, namespace), nil
}

// RoleRules are the rules of the role that a binding in namespace refers to.
func (a *Authorizer) RoleRules(_ context.Context, ref rbacv1.RoleRef, namespace string) ([]rbacv1.PolicyRule, error) {
	rules, ok := a.policy.Role(rbac.RoleOf(namespace, ref))
	if !ok {
		return nil, apierrors.NewNotFound(rbacv1.Resource(strings.ToLower(ref.Kind)+"s"), ref.Name)
	}
	return rules, nil
}

func (a *Authorizer) rules(who user.Info, namespace string) []rbacv1.PolicyRule {
	if privileged(who) {
		return everything
	}
	return a.policy.Rules(who.GetName(), who.GetGroups(), namespace)
}

// everything is what members of system:masters may do.
var everything = []rbacv1.PolicyRule{
	{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}},
	{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}},
}

func privileged(who user.Info) bool {
	for _, group := range who.GetGroups() {
		if group == user.SystemPrivilegedGroup {
			return true
		}
	}
	return false
}

func requestOf(who user.Info, r authorizer.Attributes) rbac.Request {
	request := rbac.Request{User: who.GetName(), Groups: who.GetGroups(), Verb: r.GetVerb()}
	if !r.IsResourceRequest() {
		request.Path = r.GetPath()
		return request
	}
	request.Namespace, request.APIGroup = r.GetNamespace(), r.GetAPIGroup()
	request.Resource, request.Subresource, request.Name = r.GetResource(), r.GetSubresource(), r.GetName()
	return request
}

func roleText(name rbac.Name) string {
	if name.Namespace == "" {
		return fmt.Sprintf("ClusterRole %q", name.Name)
	}
	return fmt.Sprintf("Role %q in namespace %q", name.Name, name.Namespace)
}
