package authz

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"keelson.dev/services/apiserver/internal/authz/answerform"
	"keelson.dev/services/apiserver/internal/authz/rbac"
)

// metadataForm is the form of an answer with the metadata of an object.
const metadataForm = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

// confinedTo says what a role that is confined grants where it does not grant the verb.
func confinedTo(verb string) string {
	if verb == "patch" {
		return "merge patches of finalizers and owners"
	}
	return "the metadata of Secrets"
}

// roles allows what a role allows. It does not refuse a request that a role which is not read yet may allow.
type roles struct {
	policy *rbac.Policy
	// complete is closed when the policy holds all roles and bindings that are stored.
	complete chan struct{}
}

// authorize allows or has no opinion. A request that comes before the policy is complete is allowed at once or waits.
func (s *roles) authorize(ctx context.Context, r authorizer.Attributes) (authorizer.Decision, string, error) {
	// Asked before the decision, which may have been made of a part of the policy.
	complete := s.isComplete()
	decision, reason := s.decide(ctx, r)
	if complete || decision == authorizer.DecisionAllow {
		return decision, reason, nil
	}
	select {
	case <-s.complete:
		decision, reason = s.decide(ctx, r)
		return decision, reason, nil
	case <-ctx.Done():
		return authorizer.DecisionNoOpinion, "", fmt.Errorf("the roles are still being read: %w", ctx.Err())
	}
}

func (s *roles) isComplete() bool {
	select {
	case <-s.complete:
		return true
	default:
		return false
	}
}

func (s *roles) decide(ctx context.Context, r authorizer.Attributes) (authorizer.Decision, string) {
	request := rbac.RequestOf(r)
	request.Form = answerform.Of(ctx)
	if role, ok := s.policy.Decide(request); ok {
		return authorizer.DecisionAllow, "RBAC: allowed by " + roleText(role)
	}
	if !request.IsConfined() {
		return authorizer.DecisionNoOpinion, ""
	}
	request.Form = answerform.Form{Metadata: true, Release: true}
	if role, ok := s.policy.Decide(request); ok {
		return authorizer.DecisionNoOpinion, roleText(role) + " grants " + confinedTo(request.Verb) +
			" only, which a request asks for by the header Accept: " + metadataForm
	}
	return authorizer.DecisionNoOpinion, ""
}

// rulesFor is what roles grant the user in the namespace.
func (s *roles) rulesFor(_ context.Context, who user.Info, namespace string) ([]authorizer.ResourceRuleInfo,
	[]authorizer.NonResourceRuleInfo, bool, error) {
	resources, paths := infos(s.policy.Rules(who.GetName(), who.GetGroups(), namespace))
	return resources, paths, false, nil
}

// infos are rules as a review lists them.
func infos(rules []rbacv1.PolicyRule) (resources []authorizer.ResourceRuleInfo,
	paths []authorizer.NonResourceRuleInfo) {
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
	return resources, paths
}

func roleText(name rbac.Name) string {
	if name.Namespace == "" {
		return fmt.Sprintf("ClusterRole %q", name.Name)
	}
	return fmt.Sprintf("Role %q in namespace %q", name.Name, name.Namespace)
}
