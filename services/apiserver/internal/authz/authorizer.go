// Package authz answers whether a request is allowed: always for system:masters, else by a chain of authorizers, which
// is Node and then RBAC unless a configuration says otherwise. Its informers keep the roles in memory.
package authz

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"keelson.dev/services/apiserver/internal/authz/authorizationconfig"
	"keelson.dev/services/apiserver/internal/authz/node"
	"keelson.dev/services/apiserver/internal/authz/rbac"
)

// Authorizer asks the authorizers of its chain in their order. It is also the resolver of a user's rules.
type Authorizer struct {
	roles *roles
	nodes authorizer.Authorizer
	chain atomic.Pointer[chain]
}

var (
	_ authorizer.Authorizer   = &Authorizer{}
	_ authorizer.RuleResolver = &Authorizer{}
)

// NewAuthorizer returns an authorizer over a policy and objects that change under it: it asks for nodes, then for
// roles. It denies no request before PolicyIsComplete is called.
func NewAuthorizer(policy *rbac.Policy, objects node.Objects) (*Authorizer, error) {
	a := &Authorizer{roles: &roles{policy: policy, complete: make(chan struct{})}, nodes: node.New(objects)}
	byDefault, err := newChain(
		link{name: authorizationconfig.Node, asks: a.nodes, rules: nodeRules},
		link{name: authorizationconfig.RBAC, asks: authorizer.AuthorizerFunc(a.roles.authorize),
			rules: a.roles.rulesFor})
	if err != nil {
		return nil, err
	}
	a.chain.Store(byDefault)
	return a, nil
}

// PolicyIsComplete says that the policy holds all roles and bindings that are stored. It is called once.
func (a *Authorizer) PolicyIsComplete() { close(a.roles.complete) }

// Use asks the authorizers of a configuration from now on.
func (a *Authorizer) Use(c *apiserver.AuthorizationConfiguration) error {
	var links []link
	for i, configured := range c.Authorizers {
		made, err := a.link(configured)
		if err != nil {
			return fmt.Errorf("authorizers[%d]: %w", i, err)
		}
		links = append(links, made)
	}
	configured, err := newChain(links...)
	if err != nil {
		return err
	}
	a.chain.Store(configured)
	return nil
}

// Authorize implements authorizer.Authorizer.
func (a *Authorizer) Authorize(ctx context.Context, r authorizer.Attributes) (authorizer.Decision, string, error) {
	who := r.GetUser()
	if who == nil {
		return authorizer.DecisionNoOpinion, "no user on request", nil
	}
	if privileged(who) {
		return authorizer.DecisionAllow, "", nil
	}
	return a.chain.Load().asks.Authorize(ctx, r)
}

// ConditionsAwareAuthorize implements authorizer.Authorizer; no authorizer of a chain knows conditions.
func (a *Authorizer) ConditionsAwareAuthorize(ctx context.Context,
	r authorizer.Attributes) authorizer.ConditionsAwareDecision {
	return authorizer.ConditionsAwareDecisionFromParts(a.Authorize(ctx, r))
}

// EvaluateConditions implements authorizer.Authorizer; no authorizer of a chain knows conditions.
func (a *Authorizer) EvaluateConditions(context.Context, authorizer.ConditionsAwareDecision,
	authorizer.ConditionsData) (authorizer.Decision, string, error) {
	return authorizer.DecisionDeny, "", authorizer.ErrorConditionEvaluationNotSupported
}

// RulesFor implements authorizer.RuleResolver: the rules that all authorizers of the chain know of.
func (a *Authorizer) RulesFor(ctx context.Context, who user.Info, namespace string) ([]authorizer.ResourceRuleInfo,
	[]authorizer.NonResourceRuleInfo, bool, error) {
	if privileged(who) {
		resources, paths := infos(everything)
		return resources, paths, false, nil
	}
	return a.chain.Load().rules.RulesFor(ctx, who, namespace)
}

// UserRules are the rules that the user's roles grant in namespace.
func (a *Authorizer) UserRules(_ context.Context, who user.Info, namespace string) ([]rbacv1.PolicyRule, error) {
	return a.rules(who, namespace), nil
}

// RoleRules are the rules of the role that a binding in namespace refers to.
func (a *Authorizer) RoleRules(_ context.Context, ref rbacv1.RoleRef, namespace string) ([]rbacv1.PolicyRule, error) {
	rules, ok := a.roles.policy.Role(rbac.RoleOf(namespace, ref))
	if !ok {
		return nil, apierrors.NewNotFound(rbacv1.Resource(strings.ToLower(ref.Kind)+"s"), ref.Name)
	}
	return rules, nil
}

func (a *Authorizer) rules(who user.Info, namespace string) []rbacv1.PolicyRule {
	if privileged(who) {
		return everything
	}
	return a.roles.policy.Rules(who.GetName(), who.GetGroups(), namespace)
}

// everything is what members of system:masters may do.
var everything = []rbacv1.PolicyRule{
	{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}},
	{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}},
}

func privileged(who user.Info) bool {
	return slices.Contains(who.GetGroups(), user.SystemPrivilegedGroup)
}
