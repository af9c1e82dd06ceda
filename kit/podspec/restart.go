package podspec

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/fieldcheck"
)

// How many rules a container may have, and a rule exit codes.
const (
	maxRestartRules = 20
	maxExitCodes    = 255
)

// validateRestart checks when a container is started again: its own policy, and rules that go before it. Rules stand
// beside a policy of the container itself, whichever kind of container it is. Source: KEP-5307, KEP-5532.
func validateRestart(c *corev1.Container, fldPath *field.Path) field.ErrorList {
	errs := fieldcheck.OneOfPtr(c.RestartPolicy, fldPath.Child("restartPolicy"), corev1.ContainerRestartPolicyAlways,
		corev1.ContainerRestartPolicyOnFailure, corev1.ContainerRestartPolicyNever)
	if len(c.RestartPolicyRules) == 0 {
		return errs
	}
	if c.RestartPolicy == nil {
		errs = append(errs, field.Required(fldPath.Child("restartPolicy"),
			"must specify restartPolicy when restart rules are used"))
	}
	rules := fldPath.Child("restartPolicyRules")
	if n := len(c.RestartPolicyRules); n > maxRestartRules {
		errs = append(errs, field.TooMany(rules, n, maxRestartRules))
	}
	for i := range c.RestartPolicyRules {
		errs = append(errs, validateRestartRule(&c.RestartPolicyRules[i], rules.Index(i))...)
	}
	return errs
}

func validateRestartRule(rule *corev1.ContainerRestartRule, fldPath *field.Path) field.ErrorList {
	errs := fieldcheck.OneOf(rule.Action, fldPath.Child("action"), corev1.ContainerRestartRuleActionRestart,
		corev1.ContainerRestartRuleActionRestartAllContainers)
	codes, at := rule.ExitCodes, fldPath.Child("exitCodes")
	if codes == nil {
		return append(errs, field.Required(at, "must be specified"))
	}
	errs = append(errs, fieldcheck.OneOf(codes.Operator, at.Child("operator"),
		corev1.ContainerRestartRuleOnExitCodesOpIn, corev1.ContainerRestartRuleOnExitCodesOpNotIn)...)
	if n := len(codes.Values); n > maxExitCodes {
		return append(errs, field.TooMany(at.Child("values"), n, maxExitCodes))
	}
	seen := sets.New[int32]()
	for i, code := range codes.Values {
		if seen.Has(code) {
			errs = append(errs, field.Duplicate(at.Child("values").Index(i), code))
		}
		seen.Insert(code)
	}
	return errs
}
