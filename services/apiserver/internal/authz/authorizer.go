// Package authz answers whether a request is allowed: always for
// system:masters, else by the Node authorizer and then by RBAC. Its informers
// keep the roles in memory.
package authz

import (
	"context"
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/union"

	"keelson.dev/services/apiserver/internal/authz/answerform"
	"keelson.dev/services/apiserver/internal/authz/node"
	"keelson.dev/services/apiserver/internal/authz/rbac"
	"keelson.dev/services/apiserver/internal/nodeidentity"
)

// Authorizer asks the authorizers of nodes and of roles, in this order. It is also the resolver of a user's rules.
type Authorizer struct {
	policy *rbac.Policy
	chain  authorizer.Authorizer
	// complete is closed when the policy holds all roles and bindings that are stored.
	complete chan struct{}
}

var (
	_ authorizer.Authorizer   = &Authorizer{}
	_ authorizer.RuleResolver = &Authorizer{}
)

// NewAuthorizer returns an authorizer over a policy and objects that change under it. It refuses nobody before
// PolicyIsComplete is called.
func NewAuthorizer(policy *rbac.Policy, objects node.Objects) (*Authorizer, error) {
	chain, err := union.New(
		union.NamedAuthorizer{AuthorizerName: "Node", Authorizer: node.New(objects)},
		union.NamedAuthorizer{AuthorizerName: "RBAC", Authorizer: byRoles(policy)},
	)
	if err != nil {
		return nil, fmt.Errorf("joining the authorizers: %w", err)
	}
	return &Authorizer{policy: policy, chain: chain, complete: make(chan struct{})}, nil
}

// PolicyIsComplete says that the policy holds all roles and bindings that are stored. It is called once.
func (a *Authorizer) PolicyIsComplete() { close(a.complete) }

// metadataForm is the form of an answer with the metadata of an object.
const metadataForm = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

// confinedTo says what a role that is confined grants where it does not grant the verb.
func confinedTo(verb string) string {
	if verb == "patch" {
		return "merge patches of finalizers and owners"
	}
	return "the metadata of Secrets"
}

func byRoles(policy *rbac.Policy) authorizer.AuthorizerFunc {
	return func(ctx context.Context, r authorizer.Attributes) (authorizer.Decision, string, error) {
		request := rbac.RequestOf(r)
		request.Form = answerform.Of(ctx)
		if role, ok := policy.Decide(request); ok {
			return authorizer.DecisionAllow, "RBAC: allowed by " + roleText(role), nil
		}
		if !request.IsConfined() {
			return authorizer.DecisionNoOpinion, "", nil
		}
		request.Form = answerform.Form{Metadata: true, Release: true}
		if role, ok := policy.Decide(request); ok {
			return authorizer.DecisionNoOpinion, roleText(role) + " grants " + confinedTo(request.Verb) +
				" only, which a request asks for by the header Accept: " + metadataForm, nil
		}
		return authorizer.DecisionNoOpinion, "", nil
	}
}

// Authorize implements authorizer.Authorizer. It allows or has no opinion. A request that comes before the policy is
// complete is allowed at once or waits: nobody is told that he may not what a role not read yet allows.
func (a *Authorizer) Authorize(ctx context.Context, r authorizer.Attributes) (authorizer.Decision, string, error) {
	who := r.GetUser()
	if who == nil {
		return authorizer.DecisionNoOpinion, "no user on request", nil
	}
	if privileged(who) {
		return authorizer.DecisionAllow, "", nil
	}
	// Asked before the decision, which may have been made of a part of the policy.
	complete := a.isComplete()
	decision, reason, err := a.chain.Authorize(ctx, r)
	if complete || decision == authorizer.DecisionAllow {
		return decision, reason, err
	}
	select {
	case <-a.complete:
		return a.chain.Authorize(ctx, r)
	case <-ctx.Done():
		return authorizer.DecisionNoOpinion, "", fmt.Errorf("the roles are still being read: %w", ctx.Err())
	}
}

func (a *Authorizer) isComplete() bool {
	select {
	case <-a.complete:
		return true
	default:
		return false
	}
}

// ConditionsAwareAuthorize implements authorizer.Authorizer; neither nodes nor roles know conditions.
func (a *Authorizer) ConditionsAwareAuthorize(ctx context.Context,
	r authorizer.Attributes) authorizer.ConditionsAwareDecision {
	return authorizer.ConditionsAwareDecisionFromParts(a.Authorize(ctx, r))
}

// EvaluateConditions implements authorizer.Authorizer; neither nodes nor roles know conditions.
func (a *Authorizer) EvaluateConditions(context.Context, authorizer.ConditionsAwareDecision,
	authorizer.ConditionsData) (authorizer.Decision, string, error) {
	return authorizer.DecisionDeny, "", authorizer.ErrorConditionEvaluationNotSupported
}

// RulesFor implements authorizer.RuleResolver. For a node it cannot say all: its Pods bound what the rules allow.
func (a *Authorizer) RulesFor(_ context.Context, who user.Info, namespace string) ([]authorizer.ResourceRuleInfo,
	[]authorizer.NonResourceRuleInfo, bool, error) {
	var resources []authorizer.ResourceRuleInfo
	var paths []authorizer.NonResourceRuleInfo
	rules := a.rules(who, namespace)
	_, bounded := nodeidentity.Of(who)
	bounded = bounded && !privileged(who)
	if bounded {
		rules = append(rules, node.Rules...)
	}
	for _, rule := range rules {
		if len(rule.Resources) > 0 {
			resources = append(resources, &authorizer.DefaultResourceRuleInfo{
				Verbs: rule.Verbs, APIGroups: rule.APIGroups, Resources: rule.Resources,
				ResourceNames: rule.ResourceNames,
			})
		}
		if len(rule.NonResourceURLs) > 0 {
			paths = append(paths, &authorizer.DefaultNonResourceRuleInfo{Verbs: rule.Verbs,
				NonResourceURLs: rule.NonResourceURLs})
		}
	}
	return resources, paths, bounded, nil
}

// UserRules are the rules that the user's roles grant in namespace.
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

func roleText(name rbac.Name) string {
	if name.Namespace == "" {
		return fmt.Sprintf("ClusterRole %q", name.Name)
	}
	return fmt.Sprintf("Role %q in namespace %q", name.Name, name.Namespace)
}
