// Package validatingwebhookconfiguration is the resource ValidatingWebhookConfiguration of group
// admissionregistration.k8s.io: servers that check requests.
//
//keelson:decision
package validatingwebhookconfiguration

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/services/apiserver/internal/registry/admissionregistration/webhook"
	"keelson.dev/services/apiserver/internal/resource"
)

type configuration = admissionregistrationv1.ValidatingWebhookConfiguration

// Resource is the ValidatingWebhookConfiguration.
var Resource = resource.Resource[*configuration]{
	Group:         admissionregistrationv1.GroupName,
	Name:          "validatingwebhookconfigurations",
	Singular:      "validatingwebhookconfiguration",
	Categories:    []string{"api-extensions"},
	ClusterScoped: true,
	New:           func() *configuration { return &configuration{} },
	NewList:       func() runtime.Object { return &admissionregistrationv1.ValidatingWebhookConfigurationList{} },
	Default:       Default,
	// The webhooks are counted as other kinds count their spec.
	Spec: resource.PartOf(func(c *configuration) *[]admissionregistrationv1.ValidatingWebhook { return &c.Webhooks }),
	Strategy: resource.Strategy[*configuration]{
		Validate: Validate, ValidateUpdate: ValidateUpdate, RequireResourceVersion: true,
	},
	Columns: resource.NewColumns(
		resource.NameColumn[*configuration](),
		resource.Column("Webhooks", "integer", "How many webhooks there are",
			func(c *configuration) any { return int64(len(c.Webhooks)) }),
		resource.AgeColumn[*configuration](),
	),
}

// Default fills in what the webhooks leave out.
func Default(c *configuration) {
	for _, w := range webhooks(c) {
		w.Default()
	}
}

// Validate returns what is wrong with a defaulted configuration.
func Validate(c *configuration) field.ErrorList { return ValidateUpdate(c, &configuration{}) }

// ValidateUpdate returns what is wrong with c as the successor of old.
func ValidateUpdate(c, old *configuration) field.ErrorList {
	return webhook.Validate(webhooks(c), webhook.Conditions(webhooks(old)), field.NewPath("webhooks"))
}

func webhooks(c *configuration) []webhook.Webhook {
	all := make([]webhook.Webhook, len(c.Webhooks))
	for i := range c.Webhooks {
		w := &c.Webhooks[i]
		all[i] = webhook.Webhook{
			Name: w.Name, Client: &w.ClientConfig, Rules: w.Rules, FailurePolicy: &w.FailurePolicy,
			MatchPolicy: &w.MatchPolicy, NamespaceSelector: &w.NamespaceSelector, ObjectSelector: &w.ObjectSelector,
			SideEffects: w.SideEffects, TimeoutSeconds: &w.TimeoutSeconds, Versions: w.AdmissionReviewVersions,
			Conditions: w.MatchConditions,
		}
	}
	return all
}
