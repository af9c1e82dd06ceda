package device

import (
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apicel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	devicecel "k8s.io/dynamic-resource-allocation/cel"
)

// features are those of selectors that are on.
var features = devicecel.Features{EnableConsumableCapacity: true}

// CompiledBytes is how much text of different expressions one write may bring. To compile takes some 50 µs a byte at
// worst, and the API's own bounds on requests and selectors let one object bring a minute of it.
const CompiledBytes = 64 << 10

// Selectors compiles the selectors of one object as those compile them that select, each expression once.
type Selectors struct {
	stored   sets.Set[string]
	found    map[string]field.ErrorList
	compiled int
}

// NewSelectors is for an object of which the given selectors are stored: they stay valid, whatever a newer version
// thinks of them.
func NewSelectors(stored []resourcev1.DeviceSelector) *Selectors {
	s := &Selectors{stored: sets.New[string](), found: map[string]field.ErrorList{}}
	for _, selector := range stored {
		if selector.CEL != nil {
			s.stored.Insert(selector.CEL.Expression)
		}
	}
	return s
}

// Validate returns what is wrong with selectors.
func (s *Selectors) Validate(selectors []resourcev1.DeviceSelector, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, selector := range selectors {
		at := path.Index(i).Child("cel")
		if selector.CEL == nil {
			errs = append(errs, field.Required(at, ""))
			continue
		}
		errs = append(errs, s.validate(selector.CEL.Expression, at.Child("expression"))...)
	}
	return errs
}

func (s *Selectors) validate(expression string, path *field.Path) field.ErrorList {
	if s.stored.Has(expression) {
		return nil
	}
	known, ok := s.found[expression]
	if !ok {
		known = s.compile(expression)
		s.found[expression] = known
	}
	errs := make(field.ErrorList, len(known))
	for i, err := range known {
		at := *err
		at.Field = path.String()
		errs[i] = &at
	}
	return errs
}

// compile returns what is wrong with an expression, without the field. The compiler is made when it is first needed: a
// cluster without devices pays nothing.
func (s *Selectors) compile(expression string) field.ErrorList {
	if len(expression) > resourcev1.CELSelectorExpressionMaxLength {
		return field.ErrorList{field.TooLong(nil, "", resourcev1.CELSelectorExpressionMaxLength)}
	}
	if s.compiled += len(expression); s.compiled > CompiledBytes {
		return field.ErrorList{field.Forbidden(nil, fmt.Sprintf(
			"the different expressions of one object may have %d bytes together", CompiledBytes))}
	}
	kind := environment.NewExpressions
	result := devicecel.GetCompiler(features).CompileCELExpression(expression, devicecel.Options{EnvType: &kind})
	switch err := result.Error; {
	case err == nil && result.MaxCost > resourcev1.CELSelectorExpressionMaxCost:
		return field.ErrorList{field.Forbidden(nil, "too complex, exceeds cost limit")}
	case err == nil:
		return nil
	case err.Type == apicel.ErrorTypeRequired:
		return field.ErrorList{field.Required(nil, err.Detail)}
	case err.Type == apicel.ErrorTypeInvalid:
		return field.ErrorList{field.Invalid(nil, expression, err.Detail)}
	default:
		return field.ErrorList{field.InternalError(nil, err)}
	}
}
