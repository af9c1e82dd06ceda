package job

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
)

// metRule returns the message about the first rule of a success policy that the completed indexes meet.
func metRule(policy *batchv1.SuccessPolicy, completed indexes, completions int) (message string, met bool) {
	if policy == nil {
		return "", false
	}
	for i := range policy.Rules {
		if meets(&policy.Rules[i], completed, completions) {
			return fmt.Sprintf("Matched rules at index %d", i), true
		}
	}
	return "", false
}

func meets(rule *batchv1.SuccessPolicyRule, completed indexes, completions int) bool {
	have, want := completed.count(), 0
	if rule.SucceededIndexes != nil {
		listed := parseIndexes(*rule.SucceededIndexes, completions)
		have, want = completed.common(listed), listed.count()
	}
	if rule.SucceededCount != nil {
		want = int(*rule.SucceededCount)
	}
	return want > 0 && have >= want
}
