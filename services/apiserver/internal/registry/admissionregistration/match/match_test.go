package match

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/fieldcheck/fieldtest"
)

var path = field.NewPath("x")

// ruled is a rule about Pods, changed.
func ruled(change func(*admissionregistrationv1.RuleWithOperations)) []admissionregistrationv1.RuleWithOperations {
	r := admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
		Rule: admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"},
			Resources: []string{"pods"}}}
	change(&r)
	return []admissionregistrationv1.RuleWithOperations{r}
}

func TestRules(t *testing.T) {
	type rule = admissionregistrationv1.RuleWithOperations
	const alone = "if '*' is present, nothing else may be specified"
	of := func(resources ...string) func(*rule) { return func(r *rule) { r.Resources = resources } }
	for _, row := range []struct {
		name   string
		change func(*rule)
		want   []string
	}{
		{"as it is", func(*rule) {}, nil},
		{"nothing", func(r *rule) { *r = rule{} }, []string{"x[0].operations: Required value",
			"x[0].apiGroups: Required value", "x[0].apiVersions: Required value", "x[0].resources: Required value"}},
		{"everything", func(r *rule) {
			r.Operations = []admissionregistrationv1.OperationType{"*"}
			r.APIGroups, r.APIVersions, r.Resources = []string{"*"}, []string{"*"}, []string{"*/*"}
			r.Scope = new(admissionregistrationv1.NamespacedScope)
		}, nil},
		{"everything and more", func(r *rule) {
			r.Operations = []admissionregistrationv1.OperationType{"*", "CREATE"}
			r.APIGroups, r.APIVersions = []string{"*", "apps"}, []string{"v1", "*"}
			r.Resources = []string{"*/*", "pods/status"}
		}, []string{`x[0].operations: Invalid value: ["*","CREATE"]: ` + alone, `x[0].apiGroups: Invalid value: `,
			`x[0].apiVersions: Invalid value: `, `x[0].resources: Invalid value: `,
			`x[0].resources[1]: Invalid value: "pods/status": if '*/*' is present`}[:4]},
		{"an unknown operation", func(r *rule) { r.Operations[0] = "create" },
			[]string{`x[0].operations[0]: Unsupported value: "create"`}},
		{"an unknown scope", func(r *rule) { r.Scope = new(admissionregistrationv1.ScopeType("All")) },
			[]string{`x[0].scope: Unsupported value: "All"`}},
		{"empty names", func(r *rule) { r.APIVersions, r.Resources = []string{""}, []string{"", "pods"} },
			[]string{"x[0].apiVersions[0]: Required value", "x[0].resources[0]: Required value"}},
		{"all resources and one", of("*", "pods"), []string{"x[0].resources: Invalid value"}},
		{"one, then all", of("pods", "*"), []string{"x[0].resources: Invalid value"}},
		{"all resources and a subresource", of("*", "pods/status"), nil},
		{"all subresources of one", of("pods/*", "nodes/status", "pods"), nil},
		{"all subresources and one of them", of("pods/*", "pods/status"),
			[]string{`x[0].resources[1]: Invalid value: "pods/status": if 'pods/*' is present`}},
		{"one subresource of all", of("*/scale", "pods/scale"),
			[]string{`x[0].resources[1]: Invalid value: "pods/scale": if '*/scale' is present`}},
	} {
		t.Run(row.name, func(t *testing.T) { fieldtest.Check(t, Rules(ruled(row.change), path), row.want...) })
	}
}

func TestResources(t *testing.T) {
	fieldtest.Check(t, Resources(nil, path))
	fieldtest.Check(t, Constraints(nil, path), "x: Required value")
	m := &admissionregistrationv1.MatchResources{}
	fieldtest.Check(t, Resources(m, path), "x.matchPolicy: Required value", "x.namespaceSelector: Required value",
		"x.objectSelector: Required value")
	Default(m)
	fieldtest.Check(t, Resources(m, path))
	fieldtest.Check(t, Constraints(m, path), "x.resourceRules: Required value")
	bad := &metav1.LabelSelector{MatchLabels: map[string]string{"a b": ""}}
	named := admissionregistrationv1.NamedRuleWithOperations{ResourceNames: []string{"a", "a", "a/b"},
		RuleWithOperations: ruled(func(r *admissionregistrationv1.RuleWithOperations) {
			r.Operations[0] = admissionregistrationv1.Delete
		})[0]}
	m = &admissionregistrationv1.MatchResources{NamespaceSelector: bad, ObjectSelector: bad,
		ResourceRules:        []admissionregistrationv1.NamedRuleWithOperations{named},
		ExcludeResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{}}}
	Default(m)
	if *m.ResourceRules[0].Scope != "*" || *m.ExcludeResourceRules[0].Scope != "*" {
		t.Error("rules without a scope are not about all")
	}
	fieldtest.Check(t, Constraints(m, path), "x.namespaceSelector.matchLabels: Invalid value",
		"x.objectSelector.matchLabels: Invalid value", `x.resourceRules[0].resourceNames[1]: Duplicate value: "a"`,
		`x.resourceRules[0].resourceNames[2]: Invalid value: "a/b"`, "x.excludeResourceRules[0].operations: Required",
		"x.excludeResourceRules[0].apiGroups: Required", "x.excludeResourceRules[0].apiVersions: Required",
		"x.excludeResourceRules[0].resources: Required")
	fieldtest.Check(t, NoDeletes(m, path), `x.resourceRules[0].operations[0]: Unsupported value: "DELETE"`)
	m.ResourceRules[0].Operations[0] = admissionregistrationv1.OperationAll
	fieldtest.Check(t, NoDeletes(m, path))
	fieldtest.Check(t, NoDeletes(nil, path))
}

func TestParams(t *testing.T) {
	kind := func(version, kind string) *admissionregistrationv1.ParamKind {
		return &admissionregistrationv1.ParamKind{APIVersion: version, Kind: kind}
	}
	for _, row := range []struct {
		kind *admissionregistrationv1.ParamKind
		want []string
	}{
		{nil, nil}, {kind("v1", "ConfigMap"), nil}, {kind("example.com/v1beta1", "Bound"), nil},
		{kind("", ""), []string{"x.apiVersion: Required value", "x.kind: Required value"}},
		{kind("a/b/c", "Bound"), []string{`x.apiVersion: Invalid value: "a/b/c"`}},
		{kind("A_b/v1", "Bound"), []string{`x.apiVersion: Invalid value: "A_b"`}},
		{kind("a/1", "B_d"), []string{`x.apiVersion: Invalid value: "1"`, `x.kind: Invalid value: "B_d"`}},
	} {
		fieldtest.Check(t, ParamKind(row.kind, path), row.want...)
	}
	selector, action := &metav1.LabelSelector{}, new(admissionregistrationv1.AllowAction)
	for _, row := range []struct {
		ref  *admissionregistrationv1.ParamRef
		cell string
		want []string
	}{
		{nil, "<unset>", nil},
		{&admissionregistrationv1.ParamRef{Name: "a", ParameterNotFoundAction: action}, "*/a", nil},
		{&admissionregistrationv1.ParamRef{Name: "a", Namespace: "b", ParameterNotFoundAction: action}, "b/a", nil},
		{&admissionregistrationv1.ParamRef{Selector: selector, ParameterNotFoundAction: action}, "<none>", nil},
		{&admissionregistrationv1.ParamRef{}, "<unset>",
			[]string{"x: Required value", "x.parameterNotFoundAction: Required value"}},
		{&admissionregistrationv1.ParamRef{Name: "a/b", Selector: selector,
			ParameterNotFoundAction: new(admissionregistrationv1.ParameterNotFoundActionType("Ignore"))}, "*/a/b",
			[]string{`x.name: Invalid value: "a/b"`, "x.name: Forbidden", "x.selector: Forbidden",
				`x.parameterNotFoundAction: Unsupported value: "Ignore"`}},
	} {
		fieldtest.Check(t, ParamRef(row.ref, path), row.want...)
		if got := ParamRefCell(row.ref); got != row.cell {
			t.Errorf("%+v is shown as %s", row.ref, got)
		}
	}
	fieldtest.Check(t, PolicyName("", path), "x: Required value")
	fieldtest.Check(t, PolicyName("A", path), `x: Invalid value: "A"`)
}
