// Package webhook has what webhooks that change requests and webhooks that check them have in common.
//
//keelson:decision
package webhook

import (
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apiserverwebhook "k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/defaults"
	"keelson.dev/kit/fieldcheck"
	"keelson.dev/services/apiserver/internal/registry/admissionregistration/expression"
	"keelson.dev/services/apiserver/internal/registry/admissionregistration/match"
)

const (
	defaultTimeout, maxTimeout = 10, 30
	defaultPort                = 443
)

// Webhook points at the fields that both kinds of webhooks have.
type Webhook struct {
	Name              string
	Client            *admissionregistrationv1.WebhookClientConfig
	Rules             []admissionregistrationv1.RuleWithOperations
	FailurePolicy     **admissionregistrationv1.FailurePolicyType
	MatchPolicy       **admissionregistrationv1.MatchPolicyType
	NamespaceSelector **metav1.LabelSelector
	ObjectSelector    **metav1.LabelSelector
	SideEffects       *admissionregistrationv1.SideEffectClass
	TimeoutSeconds    **int32
	Versions          []string
	Conditions        []admissionregistrationv1.MatchCondition
	// Reinvocation is nil for a webhook that changes nothing.
	Reinvocation **admissionregistrationv1.ReinvocationPolicyType
}

// Default fills in what the webhook leaves out.
func (w Webhook) Default() {
	match.DefaultRules(w.Rules)
	defaults.SetPtr(w.FailurePolicy, admissionregistrationv1.Fail)
	defaults.SetPtr(w.MatchPolicy, admissionregistrationv1.Equivalent)
	defaults.SetPtr(w.NamespaceSelector, metav1.LabelSelector{})
	defaults.SetPtr(w.ObjectSelector, metav1.LabelSelector{})
	defaults.SetPtr(w.TimeoutSeconds, defaultTimeout)
	if w.Client.Service != nil {
		defaults.SetPtr(&w.Client.Service.Port, defaultPort)
	}
	if w.Reinvocation != nil {
		defaults.SetPtr(w.Reinvocation, admissionregistrationv1.NeverReinvocationPolicy)
	}
}

// Validate returns what is wrong with the defaulted webhooks of a configuration; stored are the conditions that it had
// before.
func Validate(webhooks []Webhook, stored []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	checker, seen := expression.NewChecker(false, stored...), sets.New[string]()
	for i, w := range webhooks {
		at := path.Index(i)
		errs = append(errs, w.validate(at)...)
		errs = append(errs, checker.CheckConditions(w.Conditions, at.Child("matchConditions"))...)
		if w.Name != "" && seen.Has(w.Name) {
			errs = append(errs, field.Duplicate(at.Child("name"), w.Name))
		}
		seen.Insert(w.Name)
	}
	return errs
}

// Conditions are the conditions of all webhooks, as Validate takes them.
func Conditions(webhooks []Webhook) []string {
	var all []string
	for _, w := range webhooks {
		all = append(all, expression.Texts(w.Conditions)...)
	}
	return all
}

func (w Webhook) validate(path *field.Path) field.ErrorList {
	errs := validation.IsFullyQualifiedName(path.Child("name"), w.Name)
	errs = append(errs, match.Rules(w.Rules, path.Child("rules"))...)
	errs = append(errs, fieldcheck.OneOfPtr(*w.FailurePolicy, path.Child("failurePolicy"),
		admissionregistrationv1.Fail, admissionregistrationv1.Ignore)...)
	errs = append(errs, fieldcheck.OneOfPtr(*w.MatchPolicy, path.Child("matchPolicy"),
		admissionregistrationv1.Equivalent, admissionregistrationv1.Exact)...)
	errs = append(errs, fieldcheck.LabelSelector(*w.NamespaceSelector, path.Child("namespaceSelector"))...)
	errs = append(errs, fieldcheck.LabelSelector(*w.ObjectSelector, path.Child("objectSelector"))...)
	// A dry run asks webhooks too, so they must not have effects of their own then.
	errs = append(errs, fieldcheck.RequiredOneOf(ptr.Deref(w.SideEffects, ""), path.Child("sideEffects"),
		admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.SideEffectClassNoneOnDryRun)...)
	if seconds := *w.TimeoutSeconds; seconds != nil && (*seconds < 1 || *seconds > maxTimeout) {
		errs = append(errs, field.Invalid(path.Child("timeoutSeconds"), *seconds,
			"the timeout value must be between 1 and 30 seconds"))
	}
	if w.Reinvocation != nil {
		errs = append(errs, fieldcheck.OneOfPtr(*w.Reinvocation, path.Child("reinvocationPolicy"),
			admissionregistrationv1.IfNeededReinvocationPolicy, admissionregistrationv1.NeverReinvocationPolicy)...)
	}
	errs = append(errs, validateVersions(w.Versions, path.Child("admissionReviewVersions"))...)
	return append(errs, validateClient(w.Client, path.Child("clientConfig"))...)
}

// reviews are the versions of AdmissionReview that the apiserver speaks.
var reviews = []string{"v1", "v1beta1"}

func validateVersions(versions []string, path *field.Path) field.ErrorList {
	if len(versions) == 0 {
		return field.ErrorList{field.Required(path, "must specify one of "+strings.Join(reviews, ", "))}
	}
	var errs field.ErrorList
	seen := sets.New[string]()
	for i, version := range versions {
		if seen.Has(version) {
			errs = append(errs, field.Duplicate(path.Index(i), version))
		}
		seen.Insert(version)
		errs = append(errs, fieldcheck.Messages(version, path.Index(i), validation.IsDNS1035Label(version))...)
	}
	if !slices.ContainsFunc(reviews, seen.Has) {
		errs = append(errs, field.Invalid(path, versions, "must include at least one of "+strings.Join(reviews, ", ")))
	}
	return errs
}

func validateClient(c *admissionregistrationv1.WebhookClientConfig, path *field.Path) field.ErrorList {
	switch {
	case (c.URL == nil) == (c.Service == nil):
		return field.ErrorList{field.Required(path, "exactly one of url or service is required")}
	case c.URL != nil:
		return apiserverwebhook.ValidateWebhookURL(path.Child("url"), *c.URL, true)
	}
	s := c.Service
	return apiserverwebhook.ValidateWebhookService(path.Child("service"), s.Namespace, s.Name, s.Path,
		ptr.Deref(s.Port, 0))
}
