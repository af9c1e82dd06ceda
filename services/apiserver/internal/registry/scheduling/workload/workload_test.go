package workload

import (
	"fmt"
	"slices"
	"testing"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/fieldcheck/fieldtest"
	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

func TestColumns(t *testing.T) { tabletest.Golden(t, Resource) }

// workload has a gang of three of each name.
func workload(names ...string) *schedulingv1beta1.Workload {
	w := &schedulingv1beta1.Workload{}
	for _, name := range names {
		w.Spec.PodGroupTemplates = append(w.Spec.PodGroupTemplates, schedulingv1beta1.PodGroupTemplate{Name: name,
			SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{
				Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: 3}}})
	}
	return w
}

func controlledBy(w *schedulingv1beta1.Workload, group, kind, name string) *schedulingv1beta1.Workload {
	w.Spec.ControllerRef = &schedulingv1beta1.TypedLocalObjectReference{APIGroup: group, Kind: kind, Name: name}
	return w
}

func numbered(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("t%d", i))
	}
	return names
}

func TestValidate(t *testing.T) {
	malformed := workload("workers")
	malformed.Spec.PodGroupTemplates[0].SchedulingPolicy.Gang.MinCount = -1
	for _, row := range []struct {
		name     string
		workload *schedulingv1beta1.Workload
		want     []string
	}{
		{"one template", workload("workers"), nil},
		{"eight templates", workload(numbered(8)...), nil},
		{"nine templates", workload(numbered(9)...), []string{
			"spec.podGroupTemplates: Too many: 9: must have at most 8 items"}},
		{"no template", workload(), []string{"spec.podGroupTemplates: Required value"}},
		{"two of one name", workload("a", "a"), []string{"spec.podGroupTemplates[1].name: Duplicate value: \"a\""}},
		{"without a name", workload(""), []string{"spec.podGroupTemplates[0].name: Required value"}},
		{"a name that is no label", workload("a.b"), []string{
			"spec.podGroupTemplates[0].name: Invalid value: \"a.b\": must not contain dots"}},
		{"a malformed group", malformed, []string{
			"spec.podGroupTemplates[0].schedulingPolicy.gang.minCount: Invalid value: -1"}},
		{"a Job's", controlledBy(workload("a"), "batch", "Job", "training"), nil},
		{"a ReplicationController's", controlledBy(workload("a"), "", "ReplicationController", "web"), nil},
		{"nobody's", controlledBy(workload("a"), "", "", ""), []string{"spec.controllerRef.kind: Required value",
			"spec.controllerRef.name: Required value"}},
		{"a malformed controller's", controlledBy(workload("a"), "A", "a/b", ".."), []string{
			"spec.controllerRef.apiGroup: Invalid value", "spec.controllerRef.kind: Invalid value",
			"spec.controllerRef.name: Invalid value"}},
	} {
		t.Run(row.name, func(t *testing.T) { fieldtest.Check(t, Validate(row.workload), row.want...) })
	}
}

func TestValidateUpdate(t *testing.T) {
	larger := workload("a", "b")
	larger.Spec.PodGroupTemplates[1].SchedulingPolicy.Gang.MinCount = 9
	turned := workload("a", "b")
	slices.Reverse(turned.Spec.PodGroupTemplates)
	urgent := workload("a", "b")
	urgent.Spec.PodGroupTemplates[1].PriorityClassName = "high"
	for _, row := range []struct {
		name     string
		workload *schedulingv1beta1.Workload
		want     []string
	}{
		{"nothing", workload("a", "b"), nil},
		{"the size of a gang", larger, nil},
		{"the order", turned, nil},
		{"a class", urgent, []string{"spec.podGroupTemplates[1].priorityClassName: Invalid value"}},
		{"one more", workload("a", "b", "c"), []string{"spec.podGroupTemplates[2]: Forbidden: item may not be added"}},
		{"one less", workload("b"), []string{"spec.podGroupTemplates: Forbidden: item may not be removed"}},
		{"another", workload("a", "c"), []string{"spec.podGroupTemplates[1]: Forbidden: item may not be added",
			"spec.podGroupTemplates: Forbidden: item may not be removed"}},
		{"a controller", controlledBy(workload("a", "b"), "batch", "Job", "training"), []string{
			"spec.controllerRef: Invalid value"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			fieldtest.Check(t, ValidateUpdate(row.workload, workload("a", "b")), row.want...)
		})
	}
}

func TestDropUnserved(t *testing.T) {
	w := workload("a")
	w.Spec.CompositePodGroupTemplates = []schedulingv1beta1.CompositePodGroupTemplate{{Name: "c"}}
	w.Spec.PodGroupTemplates[0].PreemptionPolicy = ptr.To(schedulingv1beta1.PreemptNever)
	w.Spec.PodGroupTemplates[0].ResourceClaims = []schedulingv1beta1.PodGroupResourceClaim{{Name: "gpu"}}
	dropUnserved(&w.Spec)
	if got := w.Spec.PodGroupTemplates[0]; w.Spec.CompositePodGroupTemplates != nil || got.PreemptionPolicy != nil ||
		got.ResourceClaims != nil || got.SchedulingPolicy.Gang.MinCount != 3 {
		t.Errorf("kept %+v", w.Spec)
	}
}
