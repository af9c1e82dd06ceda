package priorityclass

import (
	"math"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/fieldcheck/fieldtest"
)

func class(name string, value int32, edits ...func(*schedulingv1.PriorityClass)) *schedulingv1.PriorityClass {
	pc := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}
	for _, edit := range edits {
		edit(pc)
	}
	Default(pc)
	return pc
}

func policy(p corev1.PreemptionPolicy) func(*schedulingv1.PriorityClass) {
	return func(pc *schedulingv1.PriorityClass) { pc.PreemptionPolicy = ptr.To(p) }
}

func TestValidate(t *testing.T) {
	const reserved = "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system " +
		"use only."
	for _, row := range []struct {
		name string
		pc   *schedulingv1.PriorityClass
		want []string
	}{
		{"SCH-007 highest", class("a", 1000000000), nil},
		{"SCH-007 one more", class("a", 1000000001),
			[]string{"value: Forbidden: maximum allowed value of a user defined priority is 1000000000"}},
		{"SCH-007 lowest", class("a", math.MinInt32), nil},
		{"SCH-007 zero", class("a", 0), nil},
		{"SCH-008 a name of the system's", class("system-mine", 5), []string{reserved}},
		{"SCH-008 the system's own", class("system-cluster-critical", 2000000000), nil},
		{"SCH-008 the system's own with another value", class("system-cluster-critical", 5), []string{reserved}},
		{"SCH-009 default with a description", class("a", 5, func(pc *schedulingv1.PriorityClass) {
			pc.GlobalDefault,
				pc.Description = true, "for all"
		}), nil},
		{"SCH-023 never", class("a", 5, policy("Never")), nil},
		{"SCH-023 as the seed spells it", class("a", 5, policy("PreemptionLowerPriority")),
			[]string{
				`preemptionPolicy: Unsupported value: "PreemptionLowerPriority": supported values: "Never", "PreemptLowerPriority"`}},
	} {
		t.Run(row.name, func(t *testing.T) { fieldtest.Check(t, Validate(row.pc), row.want...) })
	}
}

// SCH-012.
func TestValidateUpdate(t *testing.T) {
	old := class("a", 5)
	fieldtest.Check(t, ValidateUpdate(class("a", 5, func(pc *schedulingv1.PriorityClass) {
		pc.GlobalDefault,
			pc.Description = true, "x"
	}), old))
	fieldtest.Check(t, ValidateUpdate(class("a", 6), old), "value: Forbidden: may not be changed in an update.")
	fieldtest.Check(t, ValidateUpdate(class("a", 5, policy("Never")), old),
		"preemptionPolicy: Invalid value: \"Never\": field is immutable")
}

// SCH-008, SCH-013.
func TestSystem(t *testing.T) {
	for _, pc := range System() {
		fieldtest.Check(t, Validate(pc))
		if !isSystem(pc.Name) || *pc.PreemptionPolicy != corev1.PreemptLowerPriority {
			t.Errorf("%s is not as it should be: %+v", pc.Name, pc)
		}
	}
	if isSystem("system-mine") || isSystem("a") {
		t.Error("a class of somebody else passes for the system's")
	}
	if got := *class("a", 1).PreemptionPolicy; got != corev1.PreemptLowerPriority {
		t.Errorf("SCH-013: the default policy is %s", got)
	}
}
