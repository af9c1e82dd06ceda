package clusterrole

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/kit/fieldcheck/fieldtest"
)

func TestAggregation(t *testing.T) {
	aggregated := func(selectors ...metav1.LabelSelector) *rbacv1.ClusterRole {
		return &rbacv1.ClusterRole{AggregationRule: &rbacv1.AggregationRule{ClusterRoleSelectors: selectors}}
	}
	good := aggregated(metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}})
	fieldtest.Check(t, Validate(good))
	fieldtest.Check(t, Validate(aggregated()), "aggregationRule.clusterRoleSelectors: Required value: at least one "+
		"clusterRoleSelector required if aggregationRule is non-nil")
	fieldtest.Check(t, Validate(aggregated(metav1.LabelSelector{MatchLabels: map[string]string{"a b": "c"}})),
		"aggregationRule.clusterRoleSelectors[0].matchLabels: Invalid value")
	// Whoever makes an aggregated role could later fill it with anything.
	if rules := RulesOf(good); len(rules) != 2 || rules[0].Verbs[0] != "*" {
		t.Errorf("an aggregated role grants %v", rules)
	}
	if GrantsTheSame(good, &rbacv1.ClusterRole{}) || !GrantsTheSame(good, good.DeepCopy()) {
		t.Error("a change of the aggregation rule must be checked, no change need not")
	}
}
