package podview

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func rule(operator corev1.ContainerRestartRuleOnExitCodesOperator, codes ...int32) corev1.ContainerRestartRule {
	return corev1.ContainerRestartRule{Action: "Restart",
		ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: operator, Values: codes}}
}

// all makes a rule one for all containers.
func all(rule corev1.ContainerRestartRule) corev1.ContainerRestartRule {
	rule.Action = "RestartAllContainers"
	return rule
}

func TestRestartsAll(t *testing.T) {
	for name, row := range map[string]struct {
		rules []corev1.ContainerRestartRule
		want  map[int32]bool
	}{
		"no rule":        {nil, map[int32]bool{0: false, 42: false}},
		"a rule for one": {[]corev1.ContainerRestartRule{rule("In", 42)}, map[int32]bool{42: false}},
		"a rule for all": {[]corev1.ContainerRestartRule{all(rule("In", 42, 0))},
			map[int32]bool{0: true, 41: false, 42: true}},
		"for all after others": {[]corev1.ContainerRestartRule{all(rule("NotIn", 0, 42))},
			map[int32]bool{0: false, 42: false, 1: true}},
		"the first that names the code counts": {[]corev1.ContainerRestartRule{rule("In", 1), all(rule("In", 1, 2))},
			map[int32]bool{1: false, 2: true}},
		"whichever it is": {[]corev1.ContainerRestartRule{all(rule("In", 1)), rule("In", 1, 2)},
			map[int32]bool{1: true, 2: false}},
		"no exit codes": {[]corev1.ContainerRestartRule{{Action: "RestartAllContainers"}}, map[int32]bool{1: false}},
	} {
		c := corev1.Container{RestartPolicyRules: row.rules}
		for code, want := range row.want {
			if got := RestartsAll(&c, code); got != want {
				t.Errorf("%s: %v after exit code %d, want %v", name, got, code, want)
			}
		}
	}
	may, not := corev1.Container{RestartPolicyRules: []corev1.ContainerRestartRule{rule("In", 1), all(rule("In", 2))}},
		corev1.Container{RestartPolicyRules: []corev1.ContainerRestartRule{rule("In", 1)}}
	for i, row := range []struct {
		spec corev1.PodSpec
		want bool
	}{
		{corev1.PodSpec{Containers: []corev1.Container{not}, InitContainers: []corev1.Container{not}}, false},
		{corev1.PodSpec{Containers: []corev1.Container{not, may}}, true},
		{corev1.PodSpec{Containers: []corev1.Container{not}, InitContainers: []corev1.Container{may}}, true},
	} {
		if got := MayRestartAll(&row.spec); got != row.want {
			t.Errorf("Pod %d: may restart all %v, want %v", i, got, row.want)
		}
	}
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
		"a rule that is not known": {"Never", "Never", []corev1.ContainerRestartRule{{Action: "Stop",
			ExitCodes: rule("In", 1).ExitCodes}, rule("Maybe", 1), {Action: "Restart"}},
			map[int32]bool{0: false, 1: false}, true},
		"a rule for all containers restarts its own too": {"Never", "Never",
			[]corev1.ContainerRestartRule{all(rule("In", 42))}, map[int32]bool{0: false, 41: false, 42: true}, true},
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
