package authorizationconfig

import (
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	authorizerwebhook "k8s.io/apiserver/plugin/pkg/authorizer/webhook"
	"k8s.io/apiserver/plugin/pkg/authorizer/webhook/metrics"

	"keelson.dev/services/apiserver/internal/followedfile"
	"keelson.dev/services/apiserver/internal/webhookcall"
)

// Authorizer decides and tells what it knows of a user's rules.
type Authorizer interface {
	authorizer.Authorizer
	authorizer.RuleResolver
}

// NewWebhook returns who asks the webhook of a configuration.
func NewWebhook(c apiserver.AuthorizerConfiguration) (Authorizer, error) {
	path := *c.Webhook.ConnectionInfo.KubeConfigFile
	config, err := webhookcall.OfReviews(path)
	if err != nil {
		return nil, err
	}
	config.Timeout = c.Webhook.Timeout.Duration
	allowed, refused := c.Webhook.AuthorizedTTL.Duration, c.Webhook.UnauthorizedTTL.Duration
	if !c.Webhook.CacheAuthorizedRequests {
		allowed = 0
	}
	if !c.Webhook.CacheUnauthorizedRequests {
		refused = 0
	}
	onError := authorizer.DecisionDeny
	if c.Webhook.FailurePolicy == apiserver.FailurePolicyNoOpinion {
		onError = authorizer.DecisionNoOpinion
	}
	asks, err := authorizerwebhook.New(config, c.Webhook.SubjectAccessReviewVersion, allowed, refused,
		*genericoptions.DefaultAuthWebhookRetryBackoff(), onError, c.Webhook.MatchConditions, c.Name,
		counted{WebhookMetrics: metrics.NewWebhookMetrics(), MatcherMetrics: authorizationcel.NewMatcherMetrics()},
		compiler())
	if err != nil {
		return nil, followedfile.Wrong(path, err)
	}
	return asks, nil
}

// counted are the figures of Kubernetes about webhooks.
type counted struct {
	metrics.NoopRequestMetrics
	metrics.WebhookMetrics
	authorizationcel.MatcherMetrics
}
