package flowschema

import (
	"testing"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap"
	"sigs.k8s.io/yaml"

	"keelson.dev/kit/fieldcheck/fieldtest"
	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

func TestColumns(t *testing.T) {
	tabletest.Golden(t, Resource)
}

func schema(t *testing.T, name, spec string) *flowcontrolv1.FlowSchema {
	t.Helper()
	s := &flowcontrolv1.FlowSchema{}
	if err := yaml.UnmarshalStrict([]byte(spec), &s.Spec); err != nil {
		t.Fatal(err)
	}
	s.Name = name
	Default(s)
	return s
}

// rule is a schema's spec with a rule of subjects, resource rules and others.
func rule(subjects, resources, others string) string {
	return "{priorityLevelConfiguration: {name: a}, rules: [{subjects: " + subjects + ", resourceRules: " + resources +
		", nonResourceRules: " + others + "}]}"
}

func TestValidate(t *testing.T) {
	const (
		ann  = `[{kind: User, user: {name: ann}}]`
		pods = `[{verbs: ["*"], apiGroups: ["*"], resources: ["*"], clusterScope: true, namespaces: ["*"]}]`
		at   = "spec.rules[0]."
	)
	for _, row := range []struct {
		name, spec string
		want       []string
	}{
		{"the least", "{priorityLevelConfiguration: {name: a}}", nil},
		{"no level", "{}", []string{"spec.priorityLevelConfiguration.name: Required value"}},
		{"a level that cannot be", "{priorityLevelConfiguration: {name: A}}",
			[]string{`spec.priorityLevelConfiguration.name: Invalid value: "A"`}},
		{"the last precedence", "{priorityLevelConfiguration: {name: a}, matchingPrecedence: 10000}", nil},
		{"beyond the last", "{priorityLevelConfiguration: {name: a}, matchingPrecedence: 10001}",
			[]string{"spec.matchingPrecedence: Invalid value: 10001: must not be greater than 10000"}},
		{"before the first", "{priorityLevelConfiguration: {name: a}, matchingPrecedence: -1}",
			[]string{"spec.matchingPrecedence: Invalid value: -1: must be greater than zero"}},
		{"that of exempt", "{priorityLevelConfiguration: {name: a}, matchingPrecedence: 1}",
			[]string{"spec.matchingPrecedence: Invalid value: 1: only the schema named 'exempt'"}},
		{"the first of all others", "{priorityLevelConfiguration: {name: a}, matchingPrecedence: 2}", nil},
		{"by namespace", "{priorityLevelConfiguration: {name: a}, distinguisherMethod: {type: ByNamespace}}", nil},
		{"by nothing known", "{priorityLevelConfiguration: {name: a}, distinguisherMethod: {type: ByName}}", []string{
			`spec.distinguisherMethod.type: Unsupported value: "ByName": supported values: "ByNamespace", "ByUser"`}},
		{"a rule", rule(ann, pods, "[]"), nil},
		{"nobody", rule("[]", pods, "[]"), []string{at + "subjects: Required value"}},
		{"nothing", rule(ann, "[]", "[]"), []string{"spec.rules[0]: Required value: resourceRules and"}},
		{"no such kind", rule("[{kind: Node}]", pods, "[]"), []string{at + `subjects[0].kind: Unsupported value: "Node"`}},
		{"a user without a name", rule("[{kind: User, user: {name: ''}}]", pods, "[]"),
			[]string{at + "subjects[0].user.name: Required value"}},
		{"a user who is a group", rule("[{kind: User, group: {name: g}}]", pods, "[]"), []string{
			at + "subjects[0].user: Required value: the kind is 'User'",
			at + "subjects[0].group: Forbidden: only for kind 'Group'"}},
		{"a group without a name", rule("[{kind: Group, group: {name: ''}}]", pods, "[]"),
			[]string{at + "subjects[0].group.name: Required value"}},
		{"accounts of a namespace",
			rule("[{kind: ServiceAccount, serviceAccount: {namespace: team, name: '*'}}]", pods, "[]"), nil},
		{"accounts of all namespaces",
			rule("[{kind: ServiceAccount, serviceAccount: {namespace: '*', name: B}}]", pods, "[]"), []string{
				at + `subjects[0].serviceAccount.name: Invalid value: "B"`,
				at + `subjects[0].serviceAccount.namespace: Invalid value: "*"`}},
		{"an account without names", rule("[{kind: ServiceAccount, serviceAccount: {namespace: '', name: ''}}]", pods,
			"[]"), []string{at + "subjects[0].serviceAccount.name: Required value",
			at + "subjects[0].serviceAccount.namespace: Required value"}},
		{"empty lists", rule(ann, "[{verbs: [], apiGroups: [], resources: [], namespaces: []}]", "[]"), []string{
			at + "resourceRules[0].verbs: Required value", at + "resourceRules[0].apiGroups: Required value",
			at + "resourceRules[0].resources: Required value", at + "resourceRules[0].namespaces: Required value"}},
		{"cluster scope alone", rule(ann, "[{verbs: [get, proxy], apiGroups: [''], resources: [pods/log], "+
			"clusterScope: true, namespaces: []}]", "[]"), nil},
		{"all and some", rule(ann, "[{verbs: ['*', get], apiGroups: ['', '*'], resources: ['*', pods], "+
			"namespaces: ['*', team]}]", "[]"), []string{at + "resourceRules[0].verbs: Invalid value",
			at + "resourceRules[0].apiGroups: Invalid value", at + "resourceRules[0].resources: Invalid value",
			at + "resourceRules[0].namespaces: Invalid value"}},
		{"a verb that nobody does", rule(ann, "[{verbs: [get, post], apiGroups: [''], resources: [pods], "+
			"namespaces: [team, Team]}]", "[]"), []string{at + `resourceRules[0].verbs[1]: Unsupported value: "post"`,
			at + `resourceRules[0].namespaces[1]: Invalid value: "Team"`}},
		{"paths", rule(ann, "[]", "[{verbs: [get], nonResourceURLs: [/, /healthz, '/healthz/*', /hea]}]"), nil},
		{"all paths", rule(ann, "[]", "[{verbs: [get], nonResourceURLs: ['*']}]"), nil},
		{"no paths", rule(ann, "[]", "[{verbs: [get], nonResourceURLs: ['', healthz, '/hea*', '//a', '/a b', "+
			"'/*/a', '/*/*']}]"), []string{
			at + `nonResourceRules[0].nonResourceURLs[0]: Invalid value: "": must not be empty`,
			at + `nonResourceRules[0].nonResourceURLs[1]: Invalid value: "healthz": must start with a slash`,
			at + `nonResourceRules[0].nonResourceURLs[2]: Invalid value: "/hea*": '*' may only be the last segment`,
			at + `nonResourceRules[0].nonResourceURLs[3]: Invalid value: "//a": must not contain a double slash`,
			at + `nonResourceRules[0].nonResourceURLs[4]: Invalid value: "/a b": must not contain a space`,
			at + `nonResourceRules[0].nonResourceURLs[5]: Invalid value: "/*/a": '*' may only be the last segment`,
			at + `nonResourceRules[0].nonResourceURLs[6]: Invalid value: "/*/*": '*' may only be the last segment`}},
	} {
		t.Run(row.name, func(t *testing.T) { fieldtest.Check(t, Validate(schema(t, "mine", row.spec)), row.want...) })
	}
}

// The library's own schemas are valid, no default changes them, and the mandatory ones take no other spec.
func TestBootstrap(t *testing.T) {
	for _, s := range append(bootstrap.MandatoryFlowSchemas, bootstrap.SuggestedFlowSchemas...) {
		defaulted := s.DeepCopy()
		if Default(defaulted); defaulted.Spec.MatchingPrecedence != s.Spec.MatchingPrecedence {
			t.Errorf("%s has no precedence of its own", s.Name)
		}
		fieldtest.Check(t, Validate(defaulted))
	}
	for _, s := range bootstrap.MandatoryFlowSchemas {
		changed := s.DeepCopy()
		changed.Spec.Rules = nil
		fieldtest.Check(t, Validate(changed), "spec: Invalid value")
	}
	changed := bootstrap.SuggestedFlowSchemas[0].DeepCopy()
	changed.Spec.Rules = nil
	fieldtest.Check(t, Validate(changed))
}

func TestValidateStatus(t *testing.T) {
	s := &flowcontrolv1.FlowSchema{Status: flowcontrolv1.FlowSchemaStatus{
		Conditions: []flowcontrolv1.FlowSchemaCondition{{Type: "A"}, {Type: "B"}, {Type: "A"}, {}}}}
	fieldtest.Check(t, ValidateStatus(s), `status.conditions[2].type: Duplicate value: "A"`,
		"status.conditions[3].type: Required value")
}
