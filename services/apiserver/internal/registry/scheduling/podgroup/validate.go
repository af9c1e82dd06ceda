package podgroup

import (
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/fieldcheck"
	"keelson.dev/services/apiserver/internal/registry/scheduling/priorityclass"
)

// maxTopologies is how many topology constraints a group may have.
const maxTopologies = 1

var specPath = field.NewPath("spec")

// Validate returns what is wrong with a defaulted PodGroup.
func Validate(g *schedulingv1beta1.PodGroup) field.ErrorList {
	errs := ValidateSpec(&g.Spec, specPath)
	if ref, at := g.Spec.WorkloadRef, specPath.Child("workloadRef"); ref != nil {
		errs = append(errs, fieldcheck.Required(ref.WorkloadName, at.Child("workloadName"),
			fieldcheck.DNSSubdomain)...)
		errs = append(errs, fieldcheck.Required(ref.TemplateName, at.Child("templateName"),
			validation.IsDNS1123Label)...)
	}
	return errs
}

// ValidateUpdate returns what is wrong with g as the successor of old: only how many Pods a gang has at least may
// change.
func ValidateUpdate(g, old *schedulingv1beta1.PodGroup) field.ErrorList {
	errs := append(Validate(g), ValidateSpecUpdate(&g.Spec, &old.Spec, specPath)...)
	return append(errs, fieldcheck.Immutable(g.Spec.WorkloadRef, old.Spec.WorkloadRef,
		specPath.Child("workloadRef"))...)
}

// ValidateStatusUpdate returns what is wrong with the status of g.
func ValidateStatusUpdate(g, _ *schedulingv1beta1.PodGroup) field.ErrorList {
	return metavalidation.ValidateConditions(g.Status.Conditions, field.NewPath("status", "conditions"))
}

// ValidateSpec checks what a group and the template of a group have in common.
func ValidateSpec(spec *schedulingv1beta1.PodGroupSpec, path *field.Path) field.ErrorList {
	errs := validatePolicy(&spec.SchedulingPolicy, path.Child("schedulingPolicy"))
	if spec.SchedulingConstraints != nil {
		errs = append(errs, validateTopology(spec.SchedulingConstraints.Topology,
			path.Child("schedulingConstraints", "topology"))...)
	}
	if mode := spec.DisruptionMode; mode != nil {
		errs = append(errs, exactlyOne(path.Child("disruptionMode"), member{"single", mode.Single != nil},
			member{"all", mode.All != nil})...)
	}
	errs = append(errs, fieldcheck.Optional(spec.PriorityClassName, path.Child("priorityClassName"),
		fieldcheck.DNSSubdomain)...)
	if spec.Priority != nil {
		errs = append(errs, fieldcheck.AtMost(*spec.Priority, path.Child("priority"), priorityclass.HighestUserValue,
			content.MaxError(priorityclass.HighestUserValue))...)
	}
	return errs
}

func validatePolicy(policy *schedulingv1beta1.PodGroupSchedulingPolicy, path *field.Path) field.ErrorList {
	errs := exactlyOne(path, member{"basic", policy.Basic != nil}, member{"gang", policy.Gang != nil})
	if policy.Gang == nil {
		return errs
	}
	switch at, least := path.Child("gang", "minCount"), policy.Gang.MinCount; {
	case least == 0:
		errs = append(errs, field.Required(at, ""))
	case least < 0:
		errs = append(errs, field.Invalid(at, least, content.MinError[int32](1)))
	}
	return errs
}

func validateTopology(topology []schedulingv1beta1.TopologyConstraint, path *field.Path) field.ErrorList {
	if len(topology) > maxTopologies {
		return field.ErrorList{field.TooMany(path, len(topology), maxTopologies)}
	}
	var errs field.ErrorList
	for i := range topology {
		errs = append(errs, fieldcheck.Required(topology[i].Key, path.Index(i).Child("key"), content.IsLabelKey)...)
	}
	return errs
}

// ValidateSpecUpdate wants what a group and the template of a group have in common to stay, but for the size of a gang.
func ValidateSpecUpdate(spec, old *schedulingv1beta1.PodGroupSpec, path *field.Path) field.ErrorList {
	policy, before := &spec.SchedulingPolicy, &old.SchedulingPolicy
	at := path.Child("schedulingPolicy")
	errs := fieldcheck.Immutable(policy.Basic, before.Basic, at.Child("basic"))
	switch {
	case policy.Gang != nil && before.Gang == nil:
		errs = append(errs, field.Invalid(at.Child("gang"), nil, "field cannot be set once created"))
	case policy.Gang == nil && before.Gang != nil:
		errs = append(errs, field.Invalid(at.Child("gang"), nil, "field cannot be cleared once set"))
	}
	for _, kept := range []struct {
		name         string
		current, old any
	}{
		{"schedulingConstraints", spec.SchedulingConstraints, old.SchedulingConstraints},
		{"disruptionMode", spec.DisruptionMode, old.DisruptionMode},
		{"priorityClassName", spec.PriorityClassName, old.PriorityClassName},
		{"priority", spec.Priority, old.Priority},
	} {
		errs = append(errs, fieldcheck.Immutable(kept.current, kept.old, path.Child(kept.name))...)
	}
	return errs
}
