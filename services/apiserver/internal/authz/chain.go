package authz

import (
	"context"
	"fmt"

	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/authorization/metrics"
	"k8s.io/apiserver/pkg/authorization/union"

	"keelson.dev/services/apiserver/internal/authz/authorizationconfig"
	"keelson.dev/services/apiserver/internal/authz/node"
	"keelson.dev/services/apiserver/internal/nodeidentity"
)

// chain is who is asked, and what they know of a user's rules.
type chain struct {
	asks  authorizer.Authorizer
	rules authorizer.RuleResolver
}

// link is one of a chain.
type link struct {
	name  string
	asks  authorizer.Authorizer
	rules rulesFor
}

// rulesFor lists the rules of a user in a namespace, and reports whether there may be more.
type rulesFor func(ctx context.Context, who user.Info, namespace string) ([]authorizer.ResourceRuleInfo,
	[]authorizer.NonResourceRuleInfo, bool, error)

// RulesFor implements authorizer.RuleResolver.
func (f rulesFor) RulesFor(ctx context.Context, who user.Info, namespace string) ([]authorizer.ResourceRuleInfo,
	[]authorizer.NonResourceRuleInfo, bool, error) {
	return f(ctx, who, namespace)
}

func newChain(links ...link) (*chain, error) {
	var asks []union.NamedAuthorizer
	var rules []authorizer.RuleResolver
	for _, l := range links {
		asks = append(asks, union.NamedAuthorizer{AuthorizerName: l.name, Authorizer: l.asks})
		rules = append(rules, l.rules)
	}
	all, err := union.New(asks...)
	if err != nil {
		return nil, fmt.Errorf("joining the authorizers: %w", err)
	}
	return &chain{asks: all, rules: union.NewRuleResolvers(rules...)}, nil
}

// link is the authorizer that a configuration asks for. Its decisions are counted.
func (a *Authorizer) link(c apiserver.AuthorizerConfiguration) (link, error) {
	out := link{name: c.Name}
	switch c.Type {
	case authorizationconfig.Node:
		out.asks, out.rules = a.nodes, nodeRules
	case authorizationconfig.RBAC:
		out.asks, out.rules = authorizer.AuthorizerFunc(a.roles.authorize), a.roles.rulesFor
	case authorizationconfig.AlwaysAllow:
		out.asks, out.rules = authorizer.AuthorizerFunc(allowKnown), allRules
	case authorizationconfig.AlwaysDeny:
		deny := authorizerfactory.NewAlwaysDenyAuthorizer()
		out.asks, out.rules = deny, deny.RulesFor
	case apiserver.TypeWebhook:
		webhook, err := authorizationconfig.NewWebhook(c)
		if err != nil {
			return link{}, err
		}
		out.asks, out.rules = webhook, webhook.RulesFor
	default:
		return link{}, fmt.Errorf("type: %q is not known", c.Type)
	}
	out.asks = metrics.InstrumentedAuthorizer(string(c.Type), c.Name, out.asks)
	return out, nil
}

// nodeRules are those of a node. They are not all: its Pods bound what the rules allow.
func nodeRules(_ context.Context, who user.Info, _ string) ([]authorizer.ResourceRuleInfo,
	[]authorizer.NonResourceRuleInfo, bool, error) {
	if _, ok := nodeidentity.Of(who); !ok {
		return nil, nil, false, nil
	}
	resources, paths := infos(node.Rules)
	return resources, paths, true, nil
}

// allowKnown allows everything to everybody of whom it is known who he is.
func allowKnown(_ context.Context, r authorizer.Attributes) (authorizer.Decision, string, error) {
	if r.GetUser().GetName() == user.Anonymous {
		return authorizer.DecisionNoOpinion, "it is not for who has no credentials", nil
	}
	return authorizer.DecisionAllow, "", nil
}

func allRules(_ context.Context, who user.Info, _ string) ([]authorizer.ResourceRuleInfo,
	[]authorizer.NonResourceRuleInfo, bool, error) {
	if who.GetName() == user.Anonymous {
		return nil, nil, false, nil
	}
	resources, paths := infos(everything)
	return resources, paths, false, nil
}
