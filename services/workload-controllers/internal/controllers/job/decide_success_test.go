package job

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
)

func TestMetRule(t *testing.T) {
	rule := func(list string, atLeast int32) batchv1.SuccessPolicyRule {
		var r batchv1.SuccessPolicyRule
		if list != "" {
			r.SucceededIndexes = &list
		}
		if atLeast > 0 {
			r.SucceededCount = &atLeast
		}
		return r
	}
	rules := func(all ...batchv1.SuccessPolicyRule) *batchv1.SuccessPolicy {
		return &batchv1.SuccessPolicy{Rules: all}
	}
	for _, c := range []struct {
		name, completed string
		policy          *batchv1.SuccessPolicy
		want            string
	}{
		{"JOB-101 without a policy", "0-9", nil, ""},
		{"JOB-104 all that are listed", "0,2-4", rules(rule("0,2-3", 0)), "Matched rules at index 0"},
		{"JOB-104 all but one", "0,3-9", rules(rule("0,2-3", 0)), ""},
		{"JOB-105 as many as asked for", "4,9", rules(rule("", 2)), "Matched rules at index 0"},
		{"JOB-105 one less", "4", rules(rule("", 2)), ""},
		{"JOB-106 one of the list", "2", rules(rule("0,2-3", 1)), "Matched rules at index 0"},
		{"JOB-106 JOB-109 others do not count", "1,4-9", rules(rule("0,2-3", 1)), ""},
		{"JOB-106 one less of the list", "0,1,4", rules(rule("0,2-3", 2)), ""},
		{"JOB-107 the first that is met", "0-4", rules(rule("9", 0), rule("", 3), rule("0", 0)),
			"Matched rules at index 1"},
		{"an empty rule is never met", "0-9", rules(batchv1.SuccessPolicyRule{}), ""},
		{"a list beyond the completions is never met", "0-9", rules(rule("10-12", 0)), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			message, met := metRule(c.policy, parseIndexes(c.completed, 10), 10)
			if message != c.want || met != (c.want != "") {
				t.Errorf("%q, %t; want %q", message, met, c.want)
			}
		})
	}
}
