package policystatus

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestDecide(t *testing.T) {
	type policy = admissionregistrationv1.ValidatingAdmissionPolicy
	found := []admissionregistrationv1.ExpressionWarning{{FieldRef: "spec.validations[0].expression", Warning: "w"}}
	for _, row := range []struct {
		name    string
		given   policy
		due     bool
		warning []admissionregistrationv1.ExpressionWarning
	}{
		{"a new one", policy{ObjectMeta: metav1.ObjectMeta{Generation: 1}}, true, nil},
		{"one that another version changed", policy{ObjectMeta: metav1.ObjectMeta{Generation: 2},
			Status: admissionregistrationv1.ValidatingAdmissionPolicyStatus{ObservedGeneration: 1,
				TypeChecking: &admissionregistrationv1.TypeChecking{ExpressionWarnings: found}}}, true, nil},
		{"one that somebody saw and said nothing of", policy{ObjectMeta: metav1.ObjectMeta{Generation: 1},
			Status: admissionregistrationv1.ValidatingAdmissionPolicyStatus{ObservedGeneration: 1}}, true, found},
		{"one that was looked at", policy{ObjectMeta: metav1.ObjectMeta{Generation: 1},
			Status: admissionregistrationv1.ValidatingAdmissionPolicyStatus{ObservedGeneration: 1,
				Conditions:   []metav1.Condition{{Type: "Somebodys"}},
				TypeChecking: &admissionregistrationv1.TypeChecking{}}}, false, found},
	} {
		before := row.given.DeepCopy()
		if got := due(&row.given); got != row.due {
			t.Errorf("%s: due is %t", row.name, got)
		}
		got := decide(&row.given, row.warning)
		if !equality.Semantic.DeepEqual(before, &row.given) {
			t.Errorf("%s: it was changed", row.name)
		}
		if due(got) || !equality.Semantic.DeepEqual(got.Status.TypeChecking.ExpressionWarnings, row.warning) ||
			len(got.Status.Conditions) != len(row.given.Status.Conditions) {
			t.Errorf("%s: %+v", row.name, got.Status)
		}
	}
}
