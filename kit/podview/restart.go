package podview

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Restarts reports whether a container of a Pod with that restart policy is restarted after its process has ended with
// the exit code. It is if a rule of the container names the code, even a rule that restarts all containers. Otherwise
// its own policy decides, or the Pod's if it has none. An init container that has succeeded is done nevertheless, and
// ephemeral containers are never restarted. Source: KEP-5307.
func Restarts(policy corev1.RestartPolicy, c *corev1.Container, exitCode int32) bool {
	if action(c, exitCode) != "" {
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

// MayRestart reports whether there is an exit code after which a container of a Pod with that restart policy is
// restarted.
func MayRestart(policy corev1.RestartPolicy, c *corev1.Container) bool {
	return len(c.RestartPolicyRules) > 0 || own(policy, c) != corev1.RestartPolicyNever
}

// RestartsAll reports whether all containers of the Pod restart, its init containers first, after this one has ended
// with the exit code: of the rules that name the code the first one counts. Source: KEP-5532.
func RestartsAll(c *corev1.Container, exitCode int32) bool {
	return action(c, exitCode) == corev1.ContainerRestartRuleActionRestartAllContainers
}

// MayRestartAll reports whether a container of the Pod has a rule that restarts all of them.
func MayRestartAll(pod *corev1.PodSpec) bool {
	has := func(c corev1.Container) bool {
		return slices.ContainsFunc(c.RestartPolicyRules, func(rule corev1.ContainerRestartRule) bool {
			return rule.Action == corev1.ContainerRestartRuleActionRestartAllContainers
		})
	}
	return slices.ContainsFunc(pod.InitContainers, has) || slices.ContainsFunc(pod.Containers, has)
}

// own is the container's restart policy, or that of its Pod.
func own(policy corev1.RestartPolicy, c *corev1.Container) corev1.RestartPolicy {
	if c.RestartPolicy != nil {
		return corev1.RestartPolicy(*c.RestartPolicy)
	}
	return policy
}

// action is that of the first rule that names the exit code, empty if none does. A rule that says something else is
// none of those that the API takes.
func action(c *corev1.Container, exitCode int32) corev1.ContainerRestartRuleAction {
	for _, rule := range c.RestartPolicyRules {
		switch rule.Action {
		case corev1.ContainerRestartRuleActionRestart, corev1.ContainerRestartRuleActionRestartAllContainers:
			if names(rule.ExitCodes, exitCode) {
				return rule.Action
			}
		}
	}
	return ""
}

func names(codes *corev1.ContainerRestartRuleOnExitCodes, exitCode int32) bool {
	if codes == nil {
		return false
	}
	listed := slices.Contains(codes.Values, exitCode)
	switch codes.Operator {
	case corev1.ContainerRestartRuleOnExitCodesOpIn:
		return listed
	case corev1.ContainerRestartRuleOnExitCodesOpNotIn:
		return !listed
	}
	return false
}
