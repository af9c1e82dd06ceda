package poddisruptionbudget

import (
	"slices"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/fieldcheck/fieldtest"
	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

// SAF-028: the names it is known by, and the columns.
func TestResource(t *testing.T) {
	if Resource.Group != "policy" || Resource.ClusterScoped || Resource.Status == nil ||
		!slices.Equal(Resource.ShortNames, []string{"pdb"}) {
		t.Errorf("%+v", Resource)
	}
	if !Resource.Strategy.RequireResourceVersion || !Resource.StatusStrategy.RequireResourceVersion {
		t.Error("a budget is overwritten unseen")
	}
	tabletest.Golden(t, Resource)
}

// SAF-030, SAF-041.
func TestValidate(t *testing.T) {
	number, share := intstr.FromInt32, intstr.FromString
	least := func(v intstr.IntOrString) policyv1.PodDisruptionBudgetSpec {
		return policyv1.PodDisruptionBudgetSpec{MinAvailable: &v, Selector: &metav1.LabelSelector{}}
	}
	most := func(v intstr.IntOrString) policyv1.PodDisruptionBudgetSpec {
		return policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &v, Selector: &metav1.LabelSelector{}}
	}
	unhealthy := func(policy policyv1.UnhealthyPodEvictionPolicyType) policyv1.PodDisruptionBudgetSpec {
		return policyv1.PodDisruptionBudgetSpec{UnhealthyPodEvictionPolicy: &policy}
	}
	for _, row := range []struct {
		name string
		spec policyv1.PodDisruptionBudgetSpec
		want []string
	}{
		{"a number", least(number(2)), nil},
		{"none", most(number(0)), nil},
		{"a share", most(share("30%")), nil},
		{"all", least(share("100%")), nil},
		{"no bound", policyv1.PodDisruptionBudgetSpec{}, nil},
		{"SAF-030 both", policyv1.PodDisruptionBudgetSpec{MinAvailable: ptr.To(number(1)),
			MaxUnavailable: ptr.To(number(1))},
			[]string{"spec: Invalid value"}},
		{"SAF-030 more than all", least(share("101%")),
			[]string{`spec.minAvailable: Invalid value: "101%": must not be greater than 100%`}},
		{"SAF-030 more than all may be lost", most(share("101%")),
			[]string{`spec.maxUnavailable: Invalid value: "101%": must not be greater than 100%`}},
		{"negative", least(number(-1)),
			[]string{"spec.minAvailable: Invalid value: -1: must be greater than or equal to 0"}},
		{"negative loss", most(number(-1)),
			[]string{"spec.maxUnavailable: Invalid value: -1: must be greater than or equal to 0"}},
		{"no percent sign", most(share("5")),
			[]string{`spec.maxUnavailable: Invalid value: "5": a valid percent string`}},
		{"SAF-041 AlwaysAllow", unhealthy("AlwaysAllow"), nil},
		{"SAF-040 IfHealthyBudget", unhealthy("IfHealthyBudget"), nil},
		{"SAF-041 no such policy", unhealthy("Never"), []string{
			`spec.unhealthyPodEvictionPolicy: Unsupported value: "Never": supported values: "AlwaysAllow", "IfHealthyBudget"`}},
		{"a malformed selector", policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{
			MatchLabels: map[string]string{"a b": "c"}}}, []string{"spec.selector.matchLabels: Invalid value"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			fieldtest.Check(t, Validate(&policyv1.PodDisruptionBudget{Spec: row.spec}), row.want...)
		})
	}
	both := Validate(&policyv1.PodDisruptionBudget{Spec: policyv1.PodDisruptionBudgetSpec{
		MinAvailable: ptr.To(number(1)), MaxUnavailable: ptr.To(number(1))}})
	if both[0].Detail != "minAvailable and maxUnavailable cannot be both set" {
		t.Errorf("both bounds: %v", both)
	}
}

func TestValidateStatus(t *testing.T) {
	fieldtest.Check(t, ValidateStatus(&policyv1.PodDisruptionBudget{}))
	fieldtest.Check(t, ValidateStatus(&policyv1.PodDisruptionBudget{Status: policyv1.PodDisruptionBudgetStatus{
		DisruptionsAllowed: -1, CurrentHealthy: -1, DesiredHealthy: -1, ExpectedPods: -1,
		Conditions: []metav1.Condition{{Type: "DisruptionAllowed", Status: "Yes", Reason: "A",
			LastTransitionTime: metav1.Unix(1, 0)}},
	}}), "status.disruptionsAllowed: Invalid value: -1", "status.currentHealthy: Invalid value: -1",
		"status.desiredHealthy: Invalid value: -1", "status.expectedPods: Invalid value: -1",
		`status.conditions[0].status: Unsupported value: "Yes"`)
}
