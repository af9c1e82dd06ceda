package resourcetest

import (
	"context"
	"fmt"
	"slices"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	admissionregistrationclient "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"

	"keelson.dev/services/apiserver/internal/servertest"
)

const widgets = "paramwidgets"

// policyOf is a policy whose parameters are of a kind.
func policyOf(name, version, kind string) *admissionregistrationv1.ValidatingAdmissionPolicy {
	return &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			ParamKind:   &admissionregistrationv1.ParamKind{APIVersion: version, Kind: kind},
			Validations: []admissionregistrationv1.Validation{{Expression: "true"}},
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.
				NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule: admissionregistrationv1.Rule{APIGroups: []string{"none.example.com"}, APIVersions: []string{"v1"},
					Resources: []string{"nothing"}}}}}}}}
}

// mutatingOf is the policy as one that changes objects.
func mutatingOf(p *admissionregistrationv1.ValidatingAdmissionPolicy) *admissionregistrationv1.MutatingAdmissionPolicy {
	return &admissionregistrationv1.MutatingAdmissionPolicy{ObjectMeta: p.ObjectMeta,
		Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			ParamKind: p.Spec.ParamKind, MatchConstraints: p.Spec.MatchConstraints,
			ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
			Mutations: []admissionregistrationv1.Mutation{{
				PatchType: admissionregistrationv1.PatchTypeJSONPatch,
				JSONPatch: &admissionregistrationv1.JSONPatch{
					Expression: `[JSONPatch{op: "add", path: "/a", value: "b"}]`},
			}}}}
}

// paramsOf names the parameters of a binding.
func paramsOf(namespace, name string) *admissionregistrationv1.ParamRef {
	return &admissionregistrationv1.ParamRef{Namespace: namespace, Name: name,
		ParameterNotFoundAction: new(admissionregistrationv1.DenyAction)}
}

// policyAuthor writes policies and bindings that no other test has.
type policyAuthor struct {
	admissionregistrationclient.AdmissionregistrationV1Interface
}

func (a *policyAuthor) policy(ctx context.Context, p *admissionregistrationv1.ValidatingAdmissionPolicy,
	options metav1.CreateOptions) error {
	_, err := a.ValidatingAdmissionPolicies().Create(ctx, p, options)
	return err
}

func (a *policyAuthor) mutating(ctx context.Context, p *admissionregistrationv1.MutatingAdmissionPolicy,
	options metav1.CreateOptions) error {
	_, err := a.MutatingAdmissionPolicies().Create(ctx, p, options)
	return err
}

func (a *policyAuthor) binding(ctx context.Context, policy string, params *admissionregistrationv1.ParamRef,
	options metav1.CreateOptions) error {
	b := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "params"}}
	b.Spec.PolicyName, b.Spec.ParamRef = policy, params
	b.Spec.ValidationActions = []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}
	_, err := a.ValidatingAdmissionPolicyBindings().Create(ctx, b, options)
	return err
}

func (a *policyAuthor) mutatingBinding(ctx context.Context, policy string, params *admissionregistrationv1.ParamRef,
	options metav1.CreateOptions) error {
	b := &admissionregistrationv1.MutatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "params"}}
	b.Spec.PolicyName, b.Spec.ParamRef = policy, params
	_, err := a.MutatingAdmissionPolicyBindings().Create(ctx, b, options)
	return err
}

// defineWidgets makes a kind of one's own, and returns when its objects are served.
func defineWidgets(t *testing.T, s *servertest.Server, plural string) {
	t.Helper()
	const group = "params.example.com"
	raw := s.Client.CoreV1().RESTClient()
	err := raw.Post().AbsPath("/apis/apiextensions.k8s.io/v1/customresourcedefinitions").SetHeader("Content-Type",
		"application/json").Body([]byte(fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1",
		"kind":"CustomResourceDefinition","metadata":{"name":"%[1]s.%[2]s"},"spec":{"group":"%[2]s",
		"scope":"Namespaced","names":{"plural":"%[1]s","singular":"of%[1]s","kind":"Of%[1]s"},"versions":[
		{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`, plural, group))).Do(t.Context()).Error()
	if err != nil {
		t.Fatal(err)
	}
	servertest.Eventually(t, "the kind to be served", func(ctx context.Context) string {
		err := raw.Get().AbsPath("/apis/" + group + "/v1/namespaces/default/" + plural).Do(ctx).Error()
		if err != nil {
			return err.Error()
		}
		return ""
	})
}

// Who writes a policy or a binding by which he could learn of parameters may read these, and is asked about them once.
func testPolicyAuthors(t *testing.T, s *servertest.Server) {
	ctx := t.Context()
	write := rbacv1.PolicyRule{APIGroups: []string{admissionregistrationv1.GroupName}, Verbs: []string{"*"},
		Resources: []string{"*"}}
	read := func(group, resource string, names ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Verbs: []string{"get"}, Resources: []string{resource},
			ResourceNames: names}
	}
	defineWidgets(t, s, widgets)
	grant(t, s, "author-blind", write)
	grant(t, s, "author-of-one", write, read("", "configmaps", "one"))
	grant(t, s, "author-reading", write, read("", "configmaps"), read("params.example.com", widgets))
	created, dry := metav1.CreateOptions{}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	author := func(name string) *policyAuthor {
		return &policyAuthor{impersonate(t, s, name, "system:authenticated").AdmissionregistrationV1()}
	}
	blind, ofOne, reading := author("author-blind"), author("author-of-one"), author("author-reading")
	const kindField, refField = "spec.paramKind", "spec.paramRef"
	policy, missing := policyOf("params", "v1", "ConfigMap"), policyOf("missing", "params.example.com/v1", "Nothing")
	widget := policyOf("widgets", "params.example.com/v1", "Of"+widgets)
	for name, row := range map[string]struct {
		err  error
		want string
	}{
		"who reads nothing":              {blind.policy(ctx, policy, dry), kindField},
		"who reads nothing, of a change": {blind.mutating(ctx, mutatingOf(policy), dry), kindField},
		"who reads one":                  {ofOne.policy(ctx, policy, dry), kindField},
		"who reads all":                  {reading.policy(ctx, policy, created), ""},
		"who reads all, of a change":     {reading.mutating(ctx, mutatingOf(policy), created), ""},
		"of a kind that was just made":   {reading.policy(ctx, widget, dry), ""},
		"of one that nobody knows":       {reading.policy(ctx, missing, dry), kindField},
	} {
		wantBlamed(t, "a policy by "+name, row.err, row.want)
	}
	for name, row := range map[string]struct {
		by   *policyAuthor
		ref  *admissionregistrationv1.ParamRef
		want string
	}{
		"who reads nothing":         {blind, paramsOf("default", "one"), refField},
		"who reads one":             {ofOne, paramsOf("default", "one"), ""},
		"who reads another":         {ofOne, paramsOf("default", "two"), refField},
		"who reads all":             {reading, paramsOf("default", "two"), ""},
		"who reads nothing, of nil": {blind, nil, ""},
	} {
		wantBlamed(t, "a binding by "+name, row.by.binding(ctx, "params", row.ref, dry), row.want)
		wantBlamed(t, "a binding that changes by "+name, row.by.mutatingBinding(ctx, "params", row.ref, dry), row.want)
	}
	wantBlamed(t, "a binding of a policy that is not there by who reads all", reading.binding(ctx, "absent",
		paramsOf("default", "two"), dry), refField)

	labels := []byte(`{"metadata":{"labels":{"a":"b"}}}`)
	_, err := blind.ValidatingAdmissionPolicies().Patch(ctx, "params", types.MergePatchType, labels,
		metav1.PatchOptions{})
	wantBlamed(t, "a label by who reads nothing", err, "")
	secrets := []byte(`{"spec":{"paramKind":{"apiVersion":"v1","kind":"Secret"}}}`)
	_, err = reading.ValidatingAdmissionPolicies().Patch(ctx, "params", types.MergePatchType, secrets,
		metav1.PatchOptions{})
	wantBlamed(t, "another kind by who does not read that", err, kindField)
	applied := []byte(`{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicy",
		"metadata":{"name":"applied"},"spec":{"paramKind":{"apiVersion":"v1","kind":"Secret"},
		"validations":[{"expression":"true"}],"matchConstraints":{"resourceRules":[{"apiGroups":["none.example.com"],
		"apiVersions":["v1"],"operations":["CREATE"],"resources":["nothing"]}]}}}`)
	_, err = reading.ValidatingAdmissionPolicies().Patch(ctx, "applied", types.ApplyPatchType, applied,
		metav1.PatchOptions{FieldManager: "test"})
	wantBlamed(t, "an apply that makes one by who does not read the kind", err, kindField)
}

func wantBlamed(t *testing.T, what string, err error, field string) {
	t.Helper()
	if field == "" {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		return
	}
	if got := blamed(t, err); !slices.Equal(got, []string{field}) {
		t.Errorf("%s: %v, want it to blame %s", what, err, field)
	}
}
