package prioritylevelconfiguration

import (
	"fmt"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap"
	"k8s.io/apiserver/pkg/util/shufflesharding"

	"keelson.dev/kit/fieldcheck"
)

// maxQueues bounds what a level takes of memory.
const maxQueues = 10_000_000

// Validate returns what is wrong with a level.
func Validate(l *level) field.ErrorList {
	spec, path := &l.Spec, field.NewPath("spec")
	var errs field.ErrorList
	if isExempt := spec.Type == flowcontrolv1.PriorityLevelEnablementExempt; isExempt != isExemptName(l.Name) {
		errs = append(errs, field.Invalid(path.Child("type"), spec.Type,
			"must be 'Exempt' if and only if the name is 'exempt'"))
	}
	switch spec.Type {
	case flowcontrolv1.PriorityLevelEnablementExempt:
		if spec.Limited != nil {
			errs = append(errs, field.Forbidden(path.Child("limited"), "only for type 'Limited'"))
		}
		errs = append(errs, validateExempt(spec.Exempt, path.Child("exempt"))...)
	case flowcontrolv1.PriorityLevelEnablementLimited:
		if spec.Exempt != nil {
			errs = append(errs, field.Forbidden(path.Child("exempt"), "only for type 'Exempt'"))
		}
		errs = append(errs, validateLimited(spec.Limited, path.Child("limited"))...)
	default:
		errs = append(errs, fieldcheck.RequiredOneOf(spec.Type, path.Child("type"),
			flowcontrolv1.PriorityLevelEnablementExempt, flowcontrolv1.PriorityLevelEnablementLimited)...)
	}
	return append(errs, validateMandatory(l, path)...)
}

func isExemptName(name string) bool {
	return name == flowcontrolv1.PriorityLevelConfigurationNameExempt
}

// validateMandatory wants the levels that flow control cannot do without to be as they are, but for what an operator
// may grant to the exempt one.
func validateMandatory(l *level, path *field.Path) field.ErrorList {
	for _, mandatory := range bootstrap.MandatoryPriorityLevelConfigurations {
		if mandatory.Name != l.Name {
			continue
		}
		want, message := mandatory.Spec, fmt.Sprintf("the spec of '%s' is fixed", l.Name)
		if isExemptName(l.Name) {
			want.Exempt = l.Spec.Exempt
			message += ", but for exempt"
		}
		if !equality.Semantic.DeepEqual(want, l.Spec) {
			return field.ErrorList{field.Invalid(path, l.Spec, message)}
		}
	}
	return nil
}

func validateExempt(e *flowcontrolv1.ExemptPriorityLevelConfiguration, path *field.Path) field.ErrorList {
	if e == nil {
		return nil
	}
	return append(fieldcheck.NonNegativePtr(e.NominalConcurrencyShares, path.Child("nominalConcurrencyShares")),
		validatePercent(e.LendablePercent, path.Child("lendablePercent"))...)
}

func validateLimited(l *flowcontrolv1.LimitedPriorityLevelConfiguration, path *field.Path) field.ErrorList {
	if l == nil {
		return field.ErrorList{field.Required(path, "the type is 'Limited'")}
	}
	errs := fieldcheck.NonNegativePtr(l.NominalConcurrencyShares, path.Child("nominalConcurrencyShares"))
	errs = append(errs, validatePercent(l.LendablePercent, path.Child("lendablePercent"))...)
	errs = append(errs, fieldcheck.NonNegativePtr(l.BorrowingLimitPercent, path.Child("borrowingLimitPercent"))...)
	return append(errs, validateResponse(&l.LimitResponse, path.Child("limitResponse"))...)
}

func validatePercent(percent *int32, path *field.Path) field.ErrorList {
	if percent == nil || *percent >= 0 && *percent <= 100 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, *percent, "must be between 0 and 100")}
}

func validateResponse(r *flowcontrolv1.LimitResponse, path *field.Path) field.ErrorList {
	switch r.Type {
	case flowcontrolv1.LimitResponseTypeReject:
		if r.Queuing != nil {
			return field.ErrorList{field.Forbidden(path.Child("queuing"), "only for type 'Queue'")}
		}
		return nil
	case flowcontrolv1.LimitResponseTypeQueue:
		if r.Queuing == nil {
			return field.ErrorList{field.Required(path.Child("queuing"), "the type is 'Queue'")}
		}
		return validateQueuing(r.Queuing, path.Child("queuing"))
	}
	return fieldcheck.RequiredOneOf(r.Type, path.Child("type"), flowcontrolv1.LimitResponseTypeQueue,
		flowcontrolv1.LimitResponseTypeReject)
}

// validateQueuing wants queues, and a hand that can be dealt out of them by the bits of one hash.
func validateQueuing(q *flowcontrolv1.QueuingConfiguration, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for name, value := range map[string]int32{"queueLengthLimit": q.QueueLengthLimit, "queues": q.Queues,
		"handSize": q.HandSize} {
		if value <= 0 {
			errs = append(errs, field.Invalid(path.Child(name), value, fieldcheck.MustBePositive))
		}
	}
	if len(errs) > 0 {
		return errs
	}
	errs = fieldcheck.AtMost(q.Queues, path.Child("queues"), maxQueues,
		fmt.Sprintf("must not be greater than %d", maxQueues))
	hand := path.Child("handSize")
	if over := fieldcheck.AtMost(q.HandSize, hand, q.Queues, fmt.Sprintf("must not be greater than queues, %d",
		q.Queues)); len(over) > 0 {
		return append(errs, over...)
	}
	if bits := shufflesharding.RequiredEntropyBits(int(q.Queues), int(q.HandSize)); bits > shufflesharding.MaxHashBits {
		errs = append(errs, field.Invalid(hand, q.HandSize, fmt.Sprintf("to deal so many of %d queues takes %d bits, "+
			"of which there are %d", q.Queues, bits, shufflesharding.MaxHashBits)))
	}
	return errs
}

// ValidateStatus returns what is wrong with the status: each condition has a type of its own.
func ValidateStatus(l *level) field.ErrorList {
	type condition = flowcontrolv1.PriorityLevelConfigurationCondition
	return fieldcheck.DistinctTypes(l.Status.Conditions, field.NewPath("status", "conditions"),
		func(c *condition) flowcontrolv1.PriorityLevelConfigurationConditionType { return c.Type })
}
