package fieldcheck

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/fieldcheck/fieldtest"
)

var at = field.NewPath("at")

func TestNumbers(t *testing.T) {
	const negative = "at: Invalid value: -1: must be greater than or equal to 0"
	for name, row := range map[string]struct {
		got  field.ErrorList
		want []string
	}{
		"0":             {NonNegative(int32(0), at), nil},
		"-1":            {NonNegative(int32(-1), at), []string{negative}},
		"-1 of 64 bits": {NonNegative(int64(-1), at), []string{negative}},
		"none":          {NonNegativePtr[int32](nil, at), nil},
		"some 0":        {NonNegativePtr(ptr.To[int32](0), at), nil},
		"some -1":       {NonNegativePtr(ptr.To[int64](-1), at), []string{negative}},
		"at the limit":  {AtMost(int32(7), at, 7, "too many"), nil},
		"beyond it":     {AtMost(int32(8), at, 7, "too many"), []string{"at: Invalid value: 8: too many"}},
		"below it":      {AtMost(int64(-8), at, 7, "too many"), nil},
	} {
		t.Run(name, func(t *testing.T) { fieldtest.Check(t, row.got, row.want...) })
	}
}

func TestWords(t *testing.T) {
	const other = `at: Unsupported value: "C": supported values: "A", "B"`
	for name, row := range map[string]struct {
		got  field.ErrorList
		want []string
	}{
		"one of them":           {OneOf("B", at, "A", "B"), nil},
		"another":               {OneOf("C", at, "A", "B"), []string{other}},
		"in another case":       {OneOf("a", at, "A"), []string{`at: Unsupported value: "a"`}},
		"none":                  {OneOf("", at, "A"), []string{`at: Unsupported value: ""`}},
		"none, which is listed": {OneOf("", at, "", "A"), nil},
		"no pointer":            {OneOfPtr[string](nil, at, "A", "B"), nil},
		"a pointer to one":      {OneOfPtr(ptr.To("A"), at, "A", "B"), nil},
		"a pointer to another":  {OneOfPtr(ptr.To("C"), at, "A", "B"), []string{other}},
		"a pointer to none":     {OneOfPtr(ptr.To(""), at, "A"), []string{`at: Unsupported value: ""`}},
		"required":              {RequiredOneOf("A", at, "A", "B"), nil},
		"required and another":  {RequiredOneOf("C", at, "A", "B"), []string{other}},
		"required and missing":  {RequiredOneOf("", at, "", "A"), []string{"at: Required value"}},
		"unchanged":             {Immutable(ptr.To("a"), ptr.To("a"), at), nil},
		"changed": {Immutable(ptr.To("a"), ptr.To("b"), at),
			[]string{`at: Invalid value: "a": field is immutable`}},
		"set afterwards": {Immutable(ptr.To("a"), (*string)(nil), at),
			[]string{`at: Invalid value: "a": field is immutable`}},
		"a protocol": {Protocol("UDP", at), nil},
		"another protocol": {Protocol("ICMP", at),
			[]string{`at: Unsupported value: "ICMP": supported values: "SCTP", "TCP", "UDP"`}},
		"no protocol": {Protocol("", at), []string{"at: Required value"}},
	} {
		t.Run(name, func(t *testing.T) { fieldtest.Check(t, row.got, row.want...) })
	}
}

// A share of all is worked out in numbers of 64 bits: a percentage that no int32 holds could wrap around.
func TestPercent(t *testing.T) {
	const neither = "must be an integer or percentage (e.g. '5%')"
	const form = `a valid percent string must be a numeric string followed by an ending '%'`
	for _, row := range []struct {
		value   intstr.IntOrString
		percent int
		ok      bool
		zero    bool
		// wrong is what NonNegativeOrPercent says, tooMuch whether it is beyond 100%.
		wrong   string
		tooMuch bool
	}{
		{intstr.FromInt32(0), 0, false, true, "", false},
		{intstr.FromInt32(5), 0, false, false, "", false},
		{intstr.FromInt32(101), 0, false, false, "", false},
		{intstr.FromInt32(-1), 0, false, false, "must be greater than or equal to 0", false},
		{intstr.FromString("0%"), 0, true, true, "", false},
		{intstr.FromString("000%"), 0, true, true, "", false},
		{intstr.FromString("1%"), 1, true, false, "", false},
		{intstr.FromString("100%"), 100, true, false, "", false},
		{intstr.FromString("101%"), 101, true, false, "", true},
		{intstr.FromString("2147483647%"), 2147483647, true, false, "", true},
		{intstr.FromString("2147483648%"), 2147483648, true, false, "must not be greater than 2147483647%", true},
		{intstr.FromString("99999999999999999999%"), 9223372036854775807, true, false,
			"must not be greater than 2147483647%", true},
		{intstr.FromString("25"), 0, false, false, form, false},
		{intstr.FromString("0"), 0, false, false, form, false},
		{intstr.FromString("-1%"), 0, false, false, form, false},
		{intstr.FromString("2.5%"), 0, false, false, form, false},
		{intstr.FromString("5%%"), 0, false, false, form, false},
		{intstr.FromString("%"), 0, false, false, form, false},
		{intstr.FromString(""), 0, false, false, form, false},
		{intstr.IntOrString{Type: 7, IntVal: 1}, 0, false, false, neither, false},
		{intstr.IntOrString{Type: 7}, 0, false, false, neither, false},
	} {
		name := row.value.String()
		if percent, ok := Percent(row.value); percent != row.percent || ok != row.ok {
			t.Errorf("%s is %d percent (%v), want %d (%v)", name, percent, ok, row.percent, row.ok)
		}
		if got := IsZero(row.value); got != row.zero {
			t.Errorf("%s is zero: %v", name, got)
		}
		t.Run(name, func(t *testing.T) {
			var wrong, tooMuch []string
			if row.wrong != "" {
				wrong = []string{"at: Invalid value: " + quoted(row.value) + ": " + row.wrong}
			}
			if row.tooMuch {
				tooMuch = []string{"at: Invalid value: " + quoted(row.value) + ": must not be greater than 100%"}
			}
			fieldtest.Check(t, NonNegativeOrPercent(row.value, at), wrong...)
			fieldtest.Check(t, AtMostHundredPercent(row.value, at), tooMuch...)
		})
	}
}

// quoted is how an error shows a value.
func quoted(value intstr.IntOrString) string {
	switch value.Type {
	case intstr.String:
		return `"` + value.StrVal + `"`
	case intstr.Int:
		return value.String()
	}
	return fmt.Sprintf("%#v", value)
}

// A workload's selector says something, and matches the Pods that the workload makes.
func TestWorkloadSelector(t *testing.T) {
	web := map[string]string{"app": "web"}
	in := func(operator metav1.LabelSelectorOperator, values ...string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app",
			Operator: operator,
			Values:   values}}}
	}
	const mismatch = "labels: Invalid value: {\"app\":\"web\"}: `selector` does not match template `labels`"
	for name, row := range map[string]struct {
		selector *metav1.LabelSelector
		want     []string
	}{
		"none": {nil, []string{"selector: Required value"}},
		"empty": {&metav1.LabelSelector{},
			[]string{"selector: Invalid value: {}: empty selector is invalid for deployment"}},
		"labels":           {&metav1.LabelSelector{MatchLabels: web}, nil},
		"other labels":     {&metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}, []string{mismatch}},
		"an expression":    {in("In", "db", "web"), nil},
		"one that differs": {in("NotIn", "web"), []string{mismatch}},
		"a label and an expression": {&metav1.LabelSelector{MatchLabels: web,
			MatchExpressions: in("Exists").MatchExpressions}, nil},
		"no expression": {in("Like", "web"), []string{
			`selector.matchExpressions[0].operator: Invalid value: "Like": not a valid selector operator`,
			"selector: Invalid value:"}},
	} {
		t.Run(name, func(t *testing.T) {
			fieldtest.Check(t, WorkloadSelector(row.selector, web, "deployment", field.NewPath("selector"),
				field.NewPath("labels")), row.want...)
		})
	}
	fieldtest.Check(t, LabelSelector(nil, at))
	fieldtest.Check(t, LabelKey("a b", at), `at: Invalid value: "a b": name part must consist of`)
	fieldtest.Check(t, LabelKey("example.com/a", at))
}

func TestDataKeys(t *testing.T) {
	fieldtest.Check(t, DataKeys(map[string]string{"a": "", ".b": "", "C-_.9": ""}, at))
	got := DataKeys(map[string][]byte{"z/": nil, "..": nil, "": nil}, at)
	fieldtest.Check(t, got, `at[]: Invalid value: ""`, `at[..]: Invalid value: "..": must not be '..'`,
		`at[z/]: Invalid value: "z/": a valid config key must consist of`)
	if got[0].Field != "at[]" || got[len(got)-1].Field != "at[z/]" {
		t.Errorf("the errors have no order: %v", got)
	}
}
