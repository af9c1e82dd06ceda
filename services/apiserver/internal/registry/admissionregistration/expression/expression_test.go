package expression

import (
	"fmt"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"

	"keelson.dev/kit/fieldcheck/fieldtest"
)

var path = field.NewPath("x")

func conditions(expressions ...string) []admissionregistrationv1.MatchCondition {
	var all []admissionregistrationv1.MatchCondition
	for i, e := range expressions {
		all = append(all, admissionregistrationv1.MatchCondition{Name: fmt.Sprint("c", i), Expression: e})
	}
	return all
}

func TestConditions(t *testing.T) {
	many := make([]string, 65)
	for i := range many {
		many[i] = "true"
	}
	for _, row := range []struct {
		name   string
		given  []admissionregistrationv1.MatchCondition
		params bool
		want   []string
	}{
		{"good", conditions(`request.userInfo.username == "a"`, `authorizer.path("/healthz").check("get").allowed()`,
			"has(object.metadata.labels) || oldObject == null"), false, nil},
		{"64", conditions(many[:64]...), false, nil},
		{"65", conditions(many...), false, []string{"x: Too many: 65: must have at most 64 items"}},
		{"no expression", conditions(" "), false, []string{"x[0].expression: Required value"}},
		{"no CEL", conditions("object."), false,
			[]string{`x[0].expression: Invalid value: "object.": compilation failed`}},
		{"no bool", conditions(`"a"`), false,
			[]string{`x[0].expression: Invalid value: "\"a\"": must evaluate to bool`}},
		{"parameters", conditions("params.data.a == object.data.a"), true, nil},
		{"parameters that there are not", conditions("params.data.a == object.data.a"), false,
			[]string{"x[0].expression: Invalid value"}},
		{"variables, which come later", conditions("variables.a"), true, []string{"x[0].expression: Invalid value"}},
		{"no name", []admissionregistrationv1.MatchCondition{{Expression: "true"}}, false,
			[]string{"x[0].name: Required value"}},
		{"wrong names", []admissionregistrationv1.MatchCondition{{Name: "a b", Expression: "true"},
			{Name: "c", Expression: "true"}, {Name: "c", Expression: "true"}}, false,
			[]string{`x[0].name: Invalid value: "a b"`, `x[2].name: Duplicate value: "c"`}},
	} {
		t.Run(row.name, func(t *testing.T) {
			fieldtest.Check(t, NewChecker(row.params).CheckConditions(row.given, path), row.want...)
		})
	}
}

func TestVariables(t *testing.T) {
	checker := NewChecker(false)
	fieldtest.Check(t, checker.WithVariables([]admissionregistrationv1.Variable{
		{Name: "long", Expression: "size(object.metadata.name) > 3"}, {Name: "short", Expression: "!variables.long"},
	}, path))
	condition := func(text string) Expression { return &validating.ValidationCondition{Expression: text} }
	fieldtest.Check(t, checker.Check(condition("variables.short"), path))
	fieldtest.Check(t, checker.Check(condition("variables.shorter"), path), `x: Invalid value: "variables.shorter"`)
	fieldtest.Check(t, NewChecker(false).Check(condition("variables.short"), path), "x: Invalid value")
	fieldtest.Check(t, NewChecker(false).WithVariables([]admissionregistrationv1.Variable{
		{Name: "", Expression: ""}, {Name: "a-b", Expression: "true"}, {Name: "in", Expression: "variables.later"},
		{Name: "later", Expression: "1"}}, path), "x[0].name: Required value", "x[0].expression: Required value",
		`x[1].name: Invalid value: "a-b"`, `x[2].name: Invalid value: "in"`,
		`x[2].expression: Invalid value: "variables.later"`)
}

func TestMessages(t *testing.T) {
	message := func(text string) Expression { return &validating.MessageExpressionCondition{MessageExpression: text} }
	checker := NewChecker(false)
	fieldtest.Check(t, checker.CheckMessage(message(`"a" + object.metadata.name`), path))
	fieldtest.Check(t, checker.CheckMessage(message("true"), path), `x: Invalid value: "true": must evaluate to string`)
	fieldtest.Check(t, checker.CheckMessage(message(`authorizer.path("/").check("get").reason()`), path),
		"x: Invalid value")
}
