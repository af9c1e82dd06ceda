package authorizationconfig

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/apis/apiserver"
)

// What may be asked. Of Webhook there may be several.
const (
	Node        = "Node"
	RBAC        = "RBAC"
	AlwaysAllow = "AlwaysAllow"
	AlwaysDeny  = "AlwaysDeny"

	webhook = string(apiserver.TypeWebhook)
)

// types are all of them.
var types = []string{Node, RBAC, webhook, AlwaysAllow, AlwaysDeny}

const (
	// webhookName and webhookTimeout are those of the one that flags ask for.
	webhookName    = "default"
	webhookTimeout = 30 * time.Second
)

// configuration is what the flags say as the file would.
func (o *Options) configuration() *apiserver.AuthorizationConfiguration {
	c := &apiserver.AuthorizationConfiguration{}
	for _, mode := range o.Modes {
		a := apiserver.AuthorizerConfiguration{Type: apiserver.AuthorizerType(mode), Name: strings.ToLower(mode)}
		if mode == webhook {
			a.Name, a.Webhook = webhookName, o.Webhook.configuration()
		}
		c.Authorizers = append(c.Authorizers, a)
	}
	return c
}

func (w Webhook) configuration() *apiserver.WebhookConfiguration {
	return &apiserver.WebhookConfiguration{
		AuthorizedTTL: metav1.Duration{Duration: w.AuthorizedTTL}, CacheAuthorizedRequests: w.AuthorizedTTL > 0,
		UnauthorizedTTL: metav1.Duration{Duration: w.UnauthorizedTTL}, CacheUnauthorizedRequests: w.UnauthorizedTTL > 0,
		Timeout:                    metav1.Duration{Duration: webhookTimeout},
		SubjectAccessReviewVersion: w.Version,
		FailurePolicy:              apiserver.FailurePolicyNoOpinion,
		ConnectionInfo: apiserver.WebhookConnectionInfo{
			Type: apiserver.AuthorizationWebhookConnectionInfoTypeKubeConfigFile, KubeConfigFile: new(w.ConfigFile)},
	}
}
