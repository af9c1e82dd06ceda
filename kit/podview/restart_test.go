package podview

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func rule(operator corev1.ContainerRestartRuleOnExitCodesOperator, codes ...int32) corev1.ContainerRestartRule {
	return corev1.ContainerRestartRule{Action: "Restart",
		ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: operator, Values: codes}}
}

func TestRestarts(t *testing.T) {
	for name, row := range map[string]struct {
		policy  corev1.RestartPolicy
		own     corev1.ContainerRestartPolicy
		rules   []corev1.ContainerRestartRule
		restart map[int32]bool
		may     bool
	}{
		"by the Pod's":                 {"Always", "", nil, map[int32]bool{0: true, 1: true}, true},
		"a Pod that says nothing":      {"", "", nil, map[int32]bool{0: true, 1: true}, true},
		"by the Pod's, on failure":     {"OnFailure", "", nil, map[int32]bool{0: false, 1: true}, true},
		"by the Pod's, never":          {"Never", "", nil, map[int32]bool{0: false, 1: false}, false},
		"its own goes before, always":  {"Never", "Always", nil, map[int32]bool{0: true, 1: true}, true},
		"its own goes before, failing": {"Always", "OnFailure", nil, map[int32]bool{0: false, 1: true}, true},
		"its own goes before, never":   {"Always", "Never", nil, map[int32]bool{0: false, 1: false}, false},
		"a rule": {"Always", "Never", []corev1.ContainerRestartRule{rule("In", 42, 7)},
			map[int32]bool{0: false, 41: false, 42: true, 43: false, 7: true}, true},
		"a rule of all others": {"Never", "Never", []corev1.ContainerRestartRule{rule("NotIn", 0, 42)},
			map[int32]bool{0: false, 42: false, 1: true}, true},
		"of two rules the second": {"Never", "Never", []corev1.ContainerRestartRule{rule("In", 1), rule("In", 2)},
			map[int32]bool{0: false, 1: true, 2: true, 3: false}, true},
		"a rule that names none falls to the policy": {"Never", "OnFailure",
			[]corev1.ContainerRestartRule{rule("In", 0)}, map[int32]bool{0: true, 1: true}, true},
		"a rule that is not known": {"Never", "Never", []corev1.ContainerRestartRule{{Action: "RestartAllContainers",
			ExitCodes: rule("In", 1).ExitCodes}, rule("Maybe", 1), {Action: "Restart"}},
			map[int32]bool{0: false, 1: false}, true},
	} {
		c := &corev1.Container{RestartPolicyRules: row.rules}
		if row.own != "" {
			c.RestartPolicy = &row.own
		}
		for code, want := range row.restart {
			if got := Restarts(row.policy, c, code); got != want {
				t.Errorf("%s: %v after exit code %d, want %v", name, got, code, want)
			}
		}
		if got := MayRestart(row.policy, c); got != row.may {
			t.Errorf("%s: may restart %v, want %v", name, got, row.may)
		}
	}
}
