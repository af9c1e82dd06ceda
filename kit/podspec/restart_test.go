package podspec

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// restartRule has a container started again after an exit code of that many, 0 and the next ones.
func restartRule(codes int) corev1.ContainerRestartRule {
	values := make([]int32, codes)
	for i := range values {
		values[i] = int32(i)
	}
	return corev1.ContainerRestartRule{Action: "Restart",
		ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: "In", Values: values}}
}

func TestValidateRestart(t *testing.T) {
	never := corev1.ContainerRestartPolicyNever
	rules := func(policy *corev1.ContainerRestartPolicy, rules ...corev1.ContainerRestartRule) func(*corev1.PodSpec) {
		return first(func(c *corev1.Container) { c.RestartPolicy, c.RestartPolicyRules = policy, rules })
	}
	many := func(n int) []corev1.ContainerRestartRule {
		all := make([]corev1.ContainerRestartRule, n)
		for i := range all {
			all[i] = restartRule(1)
		}
		return all
	}
	restartAll := restartRule(2)
	restartAll.Action = "RestartAllContainers"
	const at = "spec.containers[0].restartPolicy"
	runAll(t, []row{
		{name: "always", change: rules(always)},
		{name: "on failure", change: rules(ptr.To(corev1.ContainerRestartPolicyOnFailure))},
		{name: "never", change: rules(&never)},
		{name: "something else", change: rules(ptr.To(corev1.ContainerRestartPolicy(""))),
			want: []string{at + `: Unsupported value: "": supported values: "Always", "OnFailure", "Never"`}},
		{name: "a rule", change: rules(&never, restartRule(1))},
		{name: "a rule of a sidecar", change: withInit(corev1.Container{Name: "i", Image: "i", RestartPolicy: always,
			RestartPolicyRules: many(1)})},
		{name: "a rule for all containers", change: rules(&never, restartAll)},
		{name: "of an init container", change: withInit(corev1.Container{Name: "i", Image: "i", RestartPolicy: &never,
			RestartPolicyRules: []corev1.ContainerRestartRule{restartAll}})},
		{name: "of a sidecar", change: withInit(corev1.Container{Name: "i", Image: "i", RestartPolicy: always,
			RestartPolicyRules: []corev1.ContainerRestartRule{restartAll}})},
		{name: "a rule without a policy", change: rules(nil, restartRule(1)),
			want: []string{at + `: Required value: must specify restartPolicy when restart rules are used`}},
		{name: "as many rules as there may be", change: rules(&never, many(20)...)},
		{name: "one more", change: rules(&never, many(21)...),
			want: []string{at + `Rules: Too many: 21: must have at most 20 items`}},
		{name: "as many exit codes as there may be", change: rules(&never, restartRule(255))},
		{name: "one more exit code", change: rules(&never, restartRule(256)),
			want: []string{at + `Rules[0].exitCodes.values: Too many: 256: must have at most 255 items`}},
		{name: "no exit codes", change: rules(&never, restartRule(0))},
		{name: "an exit code twice", change: rules(&never, corev1.ContainerRestartRule{Action: "Restart",
			ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: "NotIn", Values: []int32{1, 2, 1}}}),
			want: []string{at + `Rules[0].exitCodes.values[2]: Duplicate value: 1`}},
		{name: "all wrong", change: rules(&never, corev1.ContainerRestartRule{},
			corev1.ContainerRestartRule{Action: "RestartAll",
				ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: "Equals"}}),
			want: []string{
				at + `Rules[0].action: Unsupported value: "": supported values: "Restart", "RestartAllContainers"`,
				at + `Rules[0].exitCodes: Required value: must be specified`,
				at + `Rules[1].action: Unsupported value: "RestartAll": supported values: "Restart", ` +
					`"RestartAllContainers"`,
				at + `Rules[1].exitCodes.operator: Unsupported value: "Equals": supported values: "In", "NotIn"`,
			}},
	})
}
