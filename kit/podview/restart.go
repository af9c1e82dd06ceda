package podview

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Restarts says whether a container of a Pod with that restart policy is started again after its process has ended with
// the exit code: if a rule of the container names the code, or else by its own policy, or where it has none by the
// Pod's. An init container that has succeeded is done all the same, and ephemeral containers are never started again.
// Source: KEP-5307.
func Restarts(policy corev1.RestartPolicy, c *corev1.Container, exitCode int32) bool {
	named := func(rule corev1.ContainerRestartRule) bool { return names(rule, exitCode) }
	if slices.ContainsFunc(c.RestartPolicyRules, named) {
		return true
	}
	switch own(policy, c) {
	case corev1.RestartPolicyNever:
		return false
	case corev1.RestartPolicyOnFailure:
		return exitCode != 0
	}
	return true
}

// MayRestart says whether there is an exit code after which a container of a Pod with that restart policy is started
// again.
func MayRestart(policy corev1.RestartPolicy, c *corev1.Container) bool {
	return len(c.RestartPolicyRules) > 0 || own(policy, c) != corev1.RestartPolicyNever
}

// own is the container's restart policy, or that of its Pod.
func own(policy corev1.RestartPolicy, c *corev1.Container) corev1.RestartPolicy {
	if c.RestartPolicy != nil {
		return corev1.RestartPolicy(*c.RestartPolicy)
	}
	return policy
}

// names says whether a rule has the container started again after the exit code. A rule that says something else is
// none of those that the API takes.
func names(rule corev1.ContainerRestartRule, exitCode int32) bool {
	if rule.Action != corev1.ContainerRestartRuleActionRestart || rule.ExitCodes == nil {
		return false
	}
	listed := slices.Contains(rule.ExitCodes.Values, exitCode)
	switch rule.ExitCodes.Operator {
	case corev1.ContainerRestartRuleOnExitCodesOpIn:
		return listed
	case corev1.ContainerRestartRuleOnExitCodesOpNotIn:
		return !listed
	}
	return false
}
