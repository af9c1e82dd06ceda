package resourceslice

import (
	"fmt"
	"math"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/fieldcheck"
)

// maxValues is how many portions of a capacity there may be to choose from, which the library does not say.
const maxValues = 10

// validatePolicy checks in which portions a capacity is given away: in one of some, or of a range.
func validatePolicy(policy *resourcev1.CapacityRequestPolicy, capacity *resource.Quantity, path *field.Path,
) field.ErrorList {
	values, portions := policy.ValidValues, policy.ValidRange
	switch {
	case len(values) > 0 && portions != nil:
		return field.ErrorList{field.Forbidden(path,
			"exactly one policy can be specified, cannot specify `validValues` and `validRange` at the same time")}
	case len(values) == 0 && portions == nil:
		return nil
	case policy.Default == nil && portions == nil:
		return field.ErrorList{field.Required(path.Child("default"), "required when validValues is defined")}
	case policy.Default == nil:
		return field.ErrorList{field.Required(path.Child("default"), "required when validRange is defined")}
	case portions == nil:
		return validateValues(values, policy.Default, capacity, path.Child("validValues"))
	}
	return validateRange(portions, policy.Default, capacity, path.Child("validRange"))
}

// validateValues wants the portions in their order, none of them twice or more than there is, and the default among
// them.
func validateValues(values []resource.Quantity, standard, capacity *resource.Quantity, path *field.Path,
) field.ErrorList {
	if limit := maxValues; len(values) > limit {
		return field.ErrorList{field.TooMany(path, len(values), limit)}
	}
	var errs field.ErrorList
	found := false
	for i := range values {
		value, at := &values[i], path.Index(i)
		if i > 0 {
			switch order := values[i-1].Cmp(*value); {
			case order > 0:
				errs = append(errs, field.Invalid(at, value.String(), "values must be sorted in ascending order"))
			case order == 0:
				errs = append(errs, field.Duplicate(at, value.String()))
			}
		}
		if value.Cmp(*capacity) > 0 {
			errs = append(errs, field.Invalid(at, value.String(),
				"option is larger than capacity value: "+capacity.String()))
		}
		found = found || value.Cmp(*standard) == 0
	}
	if !found {
		errs = append(errs, field.Invalid(path, standard.String(),
			"default value is not valid according to the requestPolicy"))
	}
	return errs
}

// validateRange wants the range to be within what there is, the default in the range, and whole steps from its
// beginning to both the default and its end.
func validateRange(r *resourcev1.CapacityRequestPolicyRange, standard, capacity *resource.Quantity, path *field.Path,
) field.ErrorList {
	if r.Min == nil {
		return field.ErrorList{field.Required(path.Child("min"), "required when validRange is defined")}
	}
	errs := atMost(r.Min, path.Child("min"), "min", capacity, "capacity value")
	errs = append(errs, atMost(r.Min, path.Child("default"), "min", standard, "default")...)
	if r.Max != nil {
		errs = append(errs, atMost(r.Min, path.Child("max"), "min", r.Max, "max")...)
		errs = append(errs, atMost(r.Max, path.Child("max"), "max", capacity, "capacity value")...)
		errs = append(errs, atMost(standard, path.Child("default"), "default", r.Max, "max")...)
	}
	if r.Step == nil {
		return errs
	}
	if r.Step.Sign() <= 0 {
		return append(errs, field.Invalid(path.Child("step"), r.Step.String(), fieldcheck.MustBePositive))
	}
	next := r.Min.DeepCopy()
	next.Add(*r.Step)
	errs = append(errs, atMost(&next, path.Child("step"), "one step", capacity, "capacity value")...)
	return append(errs, validateSteps(r, standard, path)...)
}

func atMost(value *resource.Quantity, path *field.Path, name string, limit *resource.Quantity, of string,
) field.ErrorList {
	if value.Cmp(*limit) <= 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, value.String(), name+" is larger than "+of+": "+limit.String())}
}

// validateSteps counts in whole numbers, or in thousandths where one of the numbers is not whole.
func validateSteps(r *resourcev1.CapacityRequestPolicyRange, standard *resource.Quantity, path *field.Path,
) field.ErrorList {
	numbers := []struct {
		name  string
		value *resource.Quantity
	}{{"min", r.Min}, {"step", r.Step}, {"default", standard}, {"max", r.Max}}
	count, must := wholes, "must be a whole number from 0 to 9223372036854775807"
	for _, number := range numbers {
		if number.value != nil && !isWhole(number.value) {
			count, must = thousandths, "must be a multiple of 1m, no larger than 9223372036854775"
		}
	}
	counted := map[string]int64{}
	var errs field.ErrorList
	for _, number := range numbers {
		if number.value == nil {
			continue
		}
		n, ok := count(number.value)
		if !ok {
			errs = append(errs, field.Invalid(path.Child(number.name), number.value.String(), must))
		}
		counted[number.name] = n
	}
	if len(errs) > 0 {
		return errs
	}
	for _, number := range numbers[2:] {
		if number.value != nil && (counted[number.name]-counted["min"])%counted["step"] != 0 {
			errs = append(errs, field.Invalid(path.Child("step"), number.value.String(), fmt.Sprintf(
				"%s is not a multiple of a given step (%s) from (%s)", number.name, r.Step.String(), r.Min.String())))
		}
	}
	return errs
}

func isWhole(q *resource.Quantity) bool {
	rounded := q.DeepCopy()
	return rounded.RoundUp(0)
}

// wholes is the number, if an int64 holds it.
func wholes(q *resource.Quantity) (int64, bool) {
	if q.Sign() < 0 || q.CmpInt64(math.MaxInt64) > 0 {
		return 0, false
	}
	return q.Value(), true
}

// thousandths are how many there are, if that is a number that an int64 holds.
func thousandths(q *resource.Quantity) (int64, bool) {
	n := q.MilliValue()
	return n, q.Cmp(*resource.NewMilliQuantity(n, q.Format)) == 0
}
