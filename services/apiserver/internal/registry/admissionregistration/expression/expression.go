// Package expression checks the CEL expressions of webhooks and policies by compiling them as admission does.
package expression

import (
	"regexp"
	"strings"
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	admissioncel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"keelson.dev/kit/fieldcheck"
)

// maxConditions is how many match conditions there may be.
const maxConditions = 64

// Expression is what the library compiles.
type Expression = admissioncel.ExpressionAccessor

// Checker compiles the expressions of one object.
type Checker struct {
	variables admissioncel.OptionalVariableDeclarations
	stored    sets.Set[string]
	compiler  admissioncel.Compiler
}

// stateless compiles where there are no variables of the object's own. It is made when it is first needed: a cluster
// without webhooks and policies pays nothing.
var stateless = sync.OnceValue(func() admissioncel.Compiler { return admissioncel.NewCompiler(base()) })

func base() *environment.EnvSet {
	return environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
}

// NewChecker is for an object whose expressions may read params, if it has some. Those that were stored before stay
// valid, whatever a newer version thinks of them.
func NewChecker(params bool, stored ...string) *Checker {
	return &Checker{stored: sets.New(stored...),
		variables: admissioncel.OptionalVariableDeclarations{HasParams: params, HasAuthorizer: true}}
}

// WithVariables lets expressions read what the variables before them have made, and returns what is wrong with these.
func (c *Checker) WithVariables(variables []admissionregistrationv1.Variable, path *field.Path) field.ErrorList {
	if len(variables) == 0 {
		return nil
	}
	composed, err := admissioncel.NewCompositedCompiler(base())
	if err != nil {
		return field.ErrorList{field.InternalError(path, err)}
	}
	c.compiler = composed
	var errs field.ErrorList
	for i, v := range variables {
		at := path.Index(i)
		errs = append(errs, fieldcheck.Required(strings.TrimSpace(v.Name), at.Child("name"), isIdentifier)...)
		if strings.TrimSpace(v.Expression) == "" {
			errs = append(errs, field.Required(at.Child("expression"), ""))
			continue
		}
		variable := &validating.Variable{Name: v.Name, Expression: v.Expression}
		result := composed.CompileAndStoreVariable(variable, c.variables, c.mode(v.Expression))
		errs = append(errs, wrong(result, at.Child("expression"))...)
	}
	return errs
}

// Check returns what is wrong with an expression. It may ask for the rights of who makes the request.
func (c *Checker) Check(e Expression, path *field.Path) field.ErrorList {
	return c.check(e, c.variables, path)
}

// CheckMessage is Check for an expression that makes a message, which asks for no rights.
func (c *Checker) CheckMessage(e Expression, path *field.Path) field.ErrorList {
	variables := c.variables
	variables.HasAuthorizer = false
	return c.check(e, variables, path)
}

// CheckMutation is Check for an expression that makes a patch.
func (c *Checker) CheckMutation(e Expression, path *field.Path) field.ErrorList {
	variables := c.variables
	variables.HasPatchTypes = true
	return c.check(e, variables, path)
}

func (c *Checker) check(e Expression, variables admissioncel.OptionalVariableDeclarations, path *field.Path,
) field.ErrorList {
	if strings.TrimSpace(e.GetExpression()) == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	if c.compiler == nil {
		c.compiler = stateless()
	}
	return wrong(c.compiler.CompileCELExpression(e, variables, c.mode(e.GetExpression())), path)
}

func (c *Checker) mode(text string) environment.Type {
	if c.stored.Has(text) {
		return environment.StoredExpressions
	}
	return environment.NewExpressions
}

func wrong(result admissioncel.CompilationResult, path *field.Path) field.ErrorList {
	switch err := result.Error; {
	case err == nil:
		return nil
	case err.Type == cel.ErrorTypeRequired:
		return field.ErrorList{field.Required(path, err.Detail)}
	case err.Type == cel.ErrorTypeInvalid:
		return field.ErrorList{field.Invalid(path, result.ExpressionAccessor.GetExpression(), err.Detail)}
	default:
		return field.ErrorList{field.InternalError(path, err)}
	}
}

// CheckConditions returns what is wrong with match conditions.
func (c *Checker) CheckConditions(conditions []admissionregistrationv1.MatchCondition, path *field.Path,
) field.ErrorList {
	if len(conditions) > maxConditions {
		return field.ErrorList{field.TooMany(path, len(conditions), maxConditions)}
	}
	var errs field.ErrorList
	seen := sets.New[string]()
	for i := range conditions {
		condition, at := conditions[i], path.Index(i)
		// The variables of a policy are not there yet when its conditions are asked.
		without := &Checker{variables: c.variables, stored: c.stored}
		errs = append(errs, without.Check((*matchconditions.MatchCondition)(&condition), at.Child("expression"))...)
		errs = append(errs, fieldcheck.Required(condition.Name, at.Child("name"), validation.IsQualifiedName)...)
		if condition.Name != "" && seen.Has(condition.Name) {
			errs = append(errs, field.Duplicate(at.Child("name"), condition.Name))
		}
		seen.Insert(condition.Name)
	}
	return errs
}

// Texts are the expressions of match conditions.
func Texts(conditions []admissionregistrationv1.MatchCondition) []string {
	var all []string
	for _, c := range conditions {
		all = append(all, c.Expression)
	}
	return all
}

var (
	identifier = regexp.MustCompile("^[_a-zA-Z][_a-zA-Z0-9]*$")
	reserved   = sets.New("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function",
		"if", "import", "let", "loop", "package", "namespace", "return", "var", "void", "while")
)

func isIdentifier(name string) []string {
	if !identifier.MatchString(name) || reserved.Has(name) {
		return []string{"must be an identifier of CEL: letters, digits and underscores, and none of its own words"}
	}
	return nil
}
