package priority

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func class(name string, value int32, isDefault bool) *schedulingv1.PriorityClass {
	return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value,
		GlobalDefault: isDefault, PreemptionPolicy: ptr.To(corev1.PreemptNever)}
}

// SCH-010, SCH-011, SCH-019.
func TestPickDefault(t *testing.T) {
	for _, row := range []struct {
		name    string
		classes []*schedulingv1.PriorityClass
		want    string
	}{
		{"SCH-019 none", []*schedulingv1.PriorityClass{class("a", 5, false)}, ""},
		{"SCH-010 one", []*schedulingv1.PriorityClass{class("a", 5, false), class("b", 9, true)}, "b"},
		{"SCH-011 several after a race", []*schedulingv1.PriorityClass{class("a", 9, true), class("c", 5, true),
			class("b", 5, true)}, "b"},
		{"SCH-011 the other way round", []*schedulingv1.PriorityClass{class("b", 5, true), class("c", 5, true),
			class("a", 9, true)}, "b"},
		{"SCH-011 of negative values", []*schedulingv1.PriorityClass{class("a", 0, true), class("b", -1, true)}, "b"},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := ""
			if chosen := pickDefault(row.classes); chosen != nil {
				got = chosen.Name
			}
			if got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

func TestApply(t *testing.T) {
	for _, row := range []struct {
		name     string
		class    *schedulingv1.PriorityClass
		priority *int32
		policy   *corev1.PreemptionPolicy
		wrong    string
	}{
		{"SCH-017 a class", class("high", 1000000, false), nil, nil, ""},
		{"SCH-019 no class", nil, nil, nil, ""},
		{"SCH-020 the same number", class("high", 1000000, false), ptr.To[int32](1000000), ptr.To(corev1.PreemptNever),
			""},
		{"SCH-020 another number", class("high", 1000000, false), ptr.To[int32](5), nil,
			"the integer value of priority (5) must not be provided"},
		{"SCH-020 a number without a class", nil, ptr.To[int32](5), nil,
			"the integer value of priority (5) must not be provided"},
		{"SCH-020 another policy", class("high", 1000000, false), nil, ptr.To(corev1.PreemptLowerPriority),
			"the string value of PreemptionPolicy (PreemptLowerPriority) must not be provided"},
	} {
		t.Run(row.name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: corev1.PodSpec{Priority: row.priority, PreemptionPolicy: row.policy}}
			err := apply(pod, resolve(row.class))
			if row.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), row.wrong) {
					t.Errorf("got %v", err)
				}
				return
			}
			want := resolve(row.class)
			if err != nil || *pod.Spec.Priority != want.priority || *pod.Spec.PreemptionPolicy != want.policy ||
				pod.Spec.PriorityClassName != want.className {
				t.Errorf("got %+v, %v", pod.Spec, err)
			}
		})
	}
	// SCH-019, SCH-024.
	if none := resolve(nil); none.priority != 0 || none.policy != corev1.PreemptLowerPriority {
		t.Errorf("without a class a Pod gets %+v", none)
	}
	if some := resolve(class("a", 5, true)); some.className != "a" || some.policy != corev1.PreemptNever {
		t.Errorf("with a class a Pod gets %+v", some)
	}
}

// A group has its priority by the rules by which a Pod has it.
func TestApplyToGroup(t *testing.T) {
	for _, row := range []struct {
		name     string
		class    *schedulingv1.PriorityClass
		priority *int32
		want     int32
		wrong    string
	}{
		{"a class", class("high", 1000000, false), nil, 1000000, ""},
		{"no class", nil, nil, 0, ""},
		{"the same number", class("high", 1000000, false), ptr.To[int32](1000000), 1000000, ""},
		{"another number", class("high", 1000000, false), ptr.To[int32](5), 0,
			"the integer value of priority (5) must not be provided in pod group spec"},
	} {
		t.Run(row.name, func(t *testing.T) {
			group := &schedulingv1beta1.PodGroup{Spec: schedulingv1beta1.PodGroupSpec{Priority: row.priority}}
			err := applyToGroup(group, resolve(row.class))
			if row.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), row.wrong) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil || *group.Spec.Priority != row.want ||
				group.Spec.PriorityClassName != resolve(row.class).className {
				t.Errorf("got %+v, %v", group.Spec, err)
			}
			replaced := &schedulingv1beta1.PodGroup{}
			if keepOfGroup(replaced, group); *replaced.Spec.Priority != row.want ||
				replaced.Spec.PriorityClassName != group.Spec.PriorityClassName {
				t.Errorf("replaced by its manifest it has %+v", replaced.Spec)
			}
		})
	}
}

// SCH-021: a client that replaces a Pod with its own manifest does not mean to change its priority.
func TestKeep(t *testing.T) {
	old := &corev1.Pod{Spec: corev1.PodSpec{Priority: ptr.To[int32](7), PreemptionPolicy: ptr.To(corev1.PreemptNever)}}
	pod := &corev1.Pod{}
	if keep(pod, old); *pod.Spec.Priority != 7 || *pod.Spec.PreemptionPolicy != corev1.PreemptNever {
		t.Errorf("got %+v", pod.Spec)
	}
	pod.Spec.Priority = ptr.To[int32](9)
	if keep(pod, old); *pod.Spec.Priority != 9 {
		t.Error("a changed priority is hidden from the validation")
	}
}

// SCH-011.
func TestCheckDefault(t *testing.T) {
	all := []*schedulingv1.PriorityClass{class("a", 5, true), class("b", 6, false)}
	if err := checkDefault(class("b", 6, true), all); err == nil ||
		err.Error() != "PriorityClass a is already marked as default. Only one default can exist" {
		t.Errorf("a second default: %v", err)
	}
	for _, fine := range []*schedulingv1.PriorityClass{class("a", 5, true), class("b", 6, false)} {
		if err := checkDefault(fine, all); err != nil {
			t.Errorf("%s: %v", fine.Name, err)
		}
	}
}
