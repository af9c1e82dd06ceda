package webhook

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/fieldcheck/fieldtest"
)

// webhook is a valid one, changed and defaulted.
func webhook(change func(*admissionregistrationv1.MutatingWebhook)) Webhook {
	w := &admissionregistrationv1.MutatingWebhook{
		Name: "check.example.com", SideEffects: new(admissionregistrationv1.SideEffectClassNone),
		AdmissionReviewVersions: []string{"v1"},
		ClientConfig: admissionregistrationv1.WebhookClientConfig{
			Service: &admissionregistrationv1.ServiceReference{Namespace: "a", Name: "b"}},
	}
	change(w)
	of := Webhook{
		Name: w.Name, Client: &w.ClientConfig, Rules: w.Rules, FailurePolicy: &w.FailurePolicy,
		MatchPolicy: &w.MatchPolicy, NamespaceSelector: &w.NamespaceSelector, ObjectSelector: &w.ObjectSelector,
		SideEffects: w.SideEffects, TimeoutSeconds: &w.TimeoutSeconds, Versions: w.AdmissionReviewVersions,
		Conditions: w.MatchConditions, Reinvocation: &w.ReinvocationPolicy,
	}
	of.Default()
	return of
}

func TestDefault(t *testing.T) {
	w := webhook(func(*admissionregistrationv1.MutatingWebhook) {})
	if **w.FailurePolicy != "Fail" || **w.MatchPolicy != "Equivalent" || **w.TimeoutSeconds != 10 ||
		*w.NamespaceSelector == nil || *w.ObjectSelector == nil || *w.Client.Service.Port != 443 ||
		**w.Reinvocation != "Never" {
		t.Errorf("%+v", w)
	}
	checking := Webhook{Client: w.Client, FailurePolicy: w.FailurePolicy, MatchPolicy: w.MatchPolicy,
		NamespaceSelector: w.NamespaceSelector, ObjectSelector: w.ObjectSelector, TimeoutSeconds: w.TimeoutSeconds}
	checking.Default()
}

func TestValidate(t *testing.T) {
	type hook = admissionregistrationv1.MutatingWebhook
	bad := &metav1.LabelSelector{MatchLabels: map[string]string{"a b": ""}}
	url := func(text string) func(*hook) {
		return func(w *hook) { w.ClientConfig = admissionregistrationv1.WebhookClientConfig{URL: &text} }
	}
	for _, row := range []struct {
		name   string
		change func(*hook)
		want   []string
	}{
		{"as it is", func(*hook) {}, nil},
		{"no name", func(w *hook) { w.Name = "" }, []string{"w[0].name: Required value"}},
		{"a name with two parts", func(w *hook) { w.Name = "example.com" },
			[]string{`w[0].name: Invalid value: "example.com"`}},
		{"no versions", func(w *hook) { w.AdmissionReviewVersions = nil },
			[]string{"w[0].admissionReviewVersions: Required value: must specify one of v1, v1beta1"}},
		{"a version that is spoken among others", func(w *hook) {
			w.AdmissionReviewVersions = []string{"v2", "v1beta1"}
		}, nil},
		{"no version that is spoken", func(w *hook) { w.AdmissionReviewVersions = []string{"v2"} },
			[]string{`w[0].admissionReviewVersions: Invalid value: ["v2"]: must include at least one of v1, v1beta1`}},
		{"versions twice and wrong", func(w *hook) { w.AdmissionReviewVersions = []string{"v1", "v1", "2"} },
			[]string{`w[0].admissionReviewVersions[1]: Duplicate value: "v1"`,
				`w[0].admissionReviewVersions[2]: Invalid value: "2"`}},
		{"no side effects said", func(w *hook) { w.SideEffects = nil }, []string{"w[0].sideEffects: Required value"}},
		{"side effects", func(w *hook) { w.SideEffects = new(admissionregistrationv1.SideEffectClassSome) },
			[]string{`w[0].sideEffects: Unsupported value: "Some"`}},
		{"the shortest time", func(w *hook) { w.TimeoutSeconds = new(int32(1)) }, nil},
		{"no time", func(w *hook) { w.TimeoutSeconds = new(int32(0)) },
			[]string{"w[0].timeoutSeconds: Invalid value: 0"}},
		{"the longest time", func(w *hook) { w.TimeoutSeconds = new(int32(30)) }, nil},
		{"a second more", func(w *hook) { w.TimeoutSeconds = new(int32(31)) },
			[]string{"w[0].timeoutSeconds: Invalid value: 31"}},
		{"wrong policies", func(w *hook) {
			w.FailurePolicy = new(admissionregistrationv1.FailurePolicyType("Maybe"))
			w.MatchPolicy = new(admissionregistrationv1.MatchPolicyType("Alike"))
			w.ReinvocationPolicy = new(admissionregistrationv1.ReinvocationPolicyType("Always"))
			w.NamespaceSelector, w.ObjectSelector = bad, bad
		}, []string{`w[0].failurePolicy: Unsupported value: "Maybe"`, `w[0].matchPolicy: Unsupported value: "Alike"`,
			`w[0].reinvocationPolicy: Unsupported value: "Always"`, "w[0].namespaceSelector.matchLabels: Invalid value",
			"w[0].objectSelector.matchLabels: Invalid value"}},
		{"a wrong rule", func(w *hook) { w.Rules = make([]admissionregistrationv1.RuleWithOperations, 1) },
			[]string{"w[0].rules[0].operations: Required", "w[0].rules[0].apiGroups: Required",
				"w[0].rules[0].apiVersions: Required", "w[0].rules[0].resources: Required"}},
		{"a wrong condition", func(w *hook) {
			w.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "a", Expression: "object."}}
		}, []string{"w[0].matchConditions[0].expression: Invalid value"}},
		{"nowhere", func(w *hook) { w.ClientConfig.Service = nil }, []string{"w[0].clientConfig: Required value"}},
		{"two places", func(w *hook) { w.ClientConfig.URL = new("https://a/") },
			[]string{"w[0].clientConfig: Required value: exactly one of url or service is required"}},
		{"a URL", url("https://example.com:8443/a"), nil},
		{"without TLS", url("http://example.com/a"), []string{`w[0].clientConfig.url: Invalid value: "http"`}},
		{"with a password", url("https://a:b@example.com/a"), []string{"w[0].clientConfig.url: Invalid value"}},
		{"a wrong Service", func(w *hook) {
			w.ClientConfig.Service = &admissionregistrationv1.ServiceReference{Port: new(int32(65536)), Path: new("a")}
		}, []string{"w[0].clientConfig.service.name: Required", "w[0].clientConfig.service.namespace: Required",
			"w[0].clientConfig.service.port: Invalid value: 65536",
			`w[0].clientConfig.service.path: Invalid value: "a": must start with`,
			`w[0].clientConfig.service.path: Invalid value: "a": segment[0]`}},
	} {
		t.Run(row.name, func(t *testing.T) {
			fieldtest.Check(t, Validate([]Webhook{webhook(row.change)}, nil, field.NewPath("w")), row.want...)
		})
	}
	one := webhook(func(*hook) {})
	fieldtest.Check(t, Validate([]Webhook{one, one}, nil, field.NewPath("w")),
		`w[1].name: Duplicate value: "check.example.com"`)
}
