package servertest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"keelson.dev/services/apiserver/internal/servertest"
)

// policed is a server with a namespace in which policies are in force.
type policed struct {
	*servertest.Server
	ns string
}

func (p policed) inside() *admissionregistrationv1.MatchResources {
	return &admissionregistrationv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{
		MatchLabels: map[string]string{corev1.LabelMetadataName: p.ns}}}
}

// about are requests that write ConfigMaps.
func about(operations ...admissionregistrationv1.OperationType) *admissionregistrationv1.MatchResources {
	return &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
		RuleWithOperations: admissionregistrationv1.RuleWithOperations{Operations: operations,
			Rule: admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"},
				Resources: []string{"configmaps"}}}}}}
}

// try makes a ConfigMap with one entry, in a dry run, and returns what is made, told and said against it.
func (p policed) try(ctx context.Context, t *testing.T, value string) (*corev1.ConfigMap, []string, error) {
	t.Helper()
	told := &warnings{}
	config := p.ConfigAs(servertest.Admin)
	config.WarningHandler = told
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	made, err := client.CoreV1().ConfigMaps(p.ns).Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "tried"}, Data: map[string]string{"a": value}},
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return made, told.text, err
}

// await tries a value until what comes of it contains the text.
func (p policed) await(t *testing.T, value, text string) {
	t.Helper()
	servertest.Eventually(t, "what is said to "+value, func(ctx context.Context) string {
		made, told, err := p.try(ctx, t, value)
		if got := fmt.Sprint(err, told, made.GetLabels()); !strings.Contains(got, text) {
			return got
		}
		return ""
	})
}

func (p policed) bind(t *testing.T, change func(*admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec)) {
	t.Helper()
	b := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: p.ns},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: p.ns, MatchResources: p.inside(),
			ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}}}
	change(&b.Spec)
	if _, err := p.Client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Create(t.Context(), b,
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (p policed) check(t *testing.T, spec admissionregistrationv1.ValidatingAdmissionPolicySpec) {
	t.Helper()
	spec.MatchConstraints = about(admissionregistrationv1.Create)
	if _, err := p.Client.AdmissionregistrationV1().ValidatingAdmissionPolicies().Create(t.Context(),
		&admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: p.ns}, Spec: spec},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestPolicies has the policies of each namespace do one thing.
func TestPolicies(t *testing.T) {
	s := servertest.Start(t)
	for name, test := range map[string]func(*testing.T, policed){
		"denies": testPolicyDenies, "warns": testPolicyWarns, "parameters": testPolicyParameters,
		"type-checking": testPolicyTypes, "patches": testPolicyPatches, "applies": testPolicyApplies,
	} {
		t.Run(name, func(t *testing.T) { test(t, policed{s, s.Namespace(t, "policy-"+name)}) })
	}
}

func testPolicyDenies(t *testing.T, p policed) {
	p.check(t, admissionregistrationv1.ValidatingAdmissionPolicySpec{
		Variables: []admissionregistrationv1.Variable{{Name: "long", Expression: `size(object.data["a"]) > 3`}},
		MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "not-free",
			Expression: `object.data["a"] != "for free"`}},
		Validations: []admissionregistrationv1.Validation{{Expression: "!variables.long",
			MessageExpression: `"too long: " + object.data["a"]`, Reason: new(metav1.StatusReasonForbidden)}}})
	p.bind(t, func(*admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec) {})
	p.await(t, "much", "denied request: too long: much")
	if _, _, err := p.try(t.Context(), t, "much"); !apierrors.IsForbidden(err) {
		t.Errorf("%v", err)
	}
	for _, value := range []string{"few", "for free"} {
		if _, _, err := p.try(t.Context(), t, value); err != nil {
			t.Errorf("%s: %v", value, err)
		}
	}
	if _, err := p.Client.CoreV1().ConfigMaps("default").Create(t.Context(), configMap("much",
		map[string]string{"a": "much"}), metav1.CreateOptions{}); err != nil {
		t.Errorf("where it is not in force: %v", err)
	}
}

func testPolicyWarns(t *testing.T, p policed) {
	p.check(t, admissionregistrationv1.ValidatingAdmissionPolicySpec{
		Validations: []admissionregistrationv1.Validation{{Expression: `object.data["a"] == "b"`, Message: "not b"}}})
	p.bind(t, func(b *admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec) {
		b.ValidationActions = []admissionregistrationv1.ValidationAction{admissionregistrationv1.Warn,
			admissionregistrationv1.Audit}
	})
	p.await(t, "c", "Validation failed for ValidatingAdmissionPolicy")
	if _, told, err := p.try(t.Context(), t, "b"); err != nil || len(told) > 0 {
		t.Errorf("%v, %v", told, err)
	}
}

func testPolicyParameters(t *testing.T, p policed) {
	if _, err := p.Client.CoreV1().ConfigMaps(p.ns).Create(t.Context(), configMap("bounds",
		map[string]string{"most": "3"}), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p.check(t, admissionregistrationv1.ValidatingAdmissionPolicySpec{
		ParamKind: &admissionregistrationv1.ParamKind{APIVersion: "v1", Kind: "ConfigMap"},
		Validations: []admissionregistrationv1.Validation{
			{Expression: `size(object.data["a"]) <= int(params.data["most"])`,
				MessageExpression: `"more than " + params.data["most"]`},
		},
	})
	p.bind(t, func(b *admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec) {
		b.ParamRef = &admissionregistrationv1.ParamRef{Name: "bounds", Namespace: p.ns,
			ParameterNotFoundAction: new(admissionregistrationv1.DenyAction)}
	})
	p.await(t, "much", "more than 3")
	if _, _, err := p.try(t.Context(), t, "few"); err != nil {
		t.Error(err)
	}
	if err := p.Client.CoreV1().ConfigMaps(p.ns).Delete(t.Context(), "bounds", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	p.await(t, "few", "no params found")
}

// testPolicyTypes: the status lists what an expression would not find, and is made again when the expression changes.
func testPolicyTypes(t *testing.T, p policed) {
	p.check(t, admissionregistrationv1.ValidatingAdmissionPolicySpec{
		Validations: []admissionregistrationv1.Validation{{Expression: `object.dta["a"] == "b"`}}})
	client := p.Client.AdmissionregistrationV1().ValidatingAdmissionPolicies()
	await := func(generation int64, want string) *admissionregistrationv1.ValidatingAdmissionPolicy {
		t.Helper()
		var stored *admissionregistrationv1.ValidatingAdmissionPolicy
		servertest.Eventually(t, "the status", func(ctx context.Context) string {
			var err error
			if stored, err = client.Get(ctx, p.ns, metav1.GetOptions{}); err != nil {
				return err.Error()
			}
			status := stored.Status
			if status.ObservedGeneration != generation || status.TypeChecking == nil {
				return fmt.Sprintf("it is %+v", status)
			}
			if text := fmt.Sprint(status.TypeChecking.ExpressionWarnings); !strings.Contains(text, want) ||
				want == "[]" && text != want {
				return text
			}
			return ""
		})
		return stored
	}
	stored := await(1, "undefined field 'dta'")
	stored.Spec.Validations[0].Expression = `object.data["a"] == "b"`
	if _, err := client.Update(t.Context(), stored, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	await(2, "[]")
}

func (p policed) mutate(t *testing.T, mutations ...admissionregistrationv1.Mutation) {
	t.Helper()
	client := p.Client.AdmissionregistrationV1()
	if _, err := client.MutatingAdmissionPolicies().Create(
		t.Context(),
		&admissionregistrationv1.MutatingAdmissionPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: p.ns}, Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
				MatchConstraints: about(admissionregistrationv1.Create), Mutations: mutations}},
		metav1.CreateOptions{},
	); err != nil {
		t.Fatal(err)
	}
	if _, err := client.MutatingAdmissionPolicyBindings().Create(t.Context(),
		&admissionregistrationv1.MutatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: p.ns},
			Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: p.ns,
				MatchResources: p.inside()}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func testPolicyPatches(t *testing.T, p policed) {
	p.mutate(t, admissionregistrationv1.Mutation{PatchType: admissionregistrationv1.PatchTypeJSONPatch,
		JSONPatch: &admissionregistrationv1.JSONPatch{Expression: `[JSONPatch{op: "add", path: "/metadata/labels", ` +
			`value: {"of": object.data["a"]}}]`}})
	p.await(t, "much", "map[of:much]")
}

func testPolicyApplies(t *testing.T, p policed) {
	p.mutate(t, admissionregistrationv1.Mutation{PatchType: admissionregistrationv1.PatchTypeApplyConfiguration,
		ApplyConfiguration: &admissionregistrationv1.ApplyConfiguration{Expression: `Object{metadata: ` +
			`Object.metadata{labels: {"of": object.data["a"]}}}`}})
	p.await(t, "much", "map[of:much]")
}
