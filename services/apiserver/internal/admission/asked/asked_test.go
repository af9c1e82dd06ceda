package asked

import (
	"testing"
	"testing/synctest"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
)

func rules(named ...string) []admissionregistrationv1.RuleWithOperations {
	return []admissionregistrationv1.RuleWithOperations{{Rule: admissionregistrationv1.Rule{Resources: named}}}
}

func constraints(named ...string) *admissionregistrationv1.MatchResources {
	return &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{
		{RuleWithOperations: rules(named...)[0]}}}
}

// What a webhook or policy may be about is asked of it; each row names the resources that it may be about, and one that
// it is not.
func TestWhatObjectsAreAbout(t *testing.T) {
	mutating := func(webhooks ...admissionregistrationv1.MutatingWebhook) any {
		return &admissionregistrationv1.MutatingWebhookConfiguration{Webhooks: webhooks}
	}
	for name, row := range map[string]struct {
		of     func(any) []subject
		object any
		about  []string
		others bool
	}{
		"nothing": {ofMutatingWebhooks, mutating(), nil, false},
		"two webhooks": {ofMutatingWebhooks, mutating(admissionregistrationv1.MutatingWebhook{Rules: rules("pods")},
			admissionregistrationv1.MutatingWebhook{Rules: rules("secrets/status", "events/*")}),
			[]string{"pods", "secrets", "events"}, false},
		"all": {ofMutatingWebhooks, mutating(admissionregistrationv1.MutatingWebhook{Rules: rules("*")}), nil, true},
		"all and their subresources": {ofMutatingWebhooks,
			mutating(admissionregistrationv1.MutatingWebhook{Rules: rules("*/*")}), nil, true},
		"a subresource of all": {ofMutatingWebhooks,
			mutating(admissionregistrationv1.MutatingWebhook{Rules: rules("*/scale")}), nil, true},
		"who checks": {ofValidatingWebhooks, &admissionregistrationv1.ValidatingWebhookConfiguration{
			Webhooks: []admissionregistrationv1.ValidatingWebhook{{Rules: rules("pods")}}}, []string{"pods"}, false},
		"a policy": {ofMutatingPolicy, &admissionregistrationv1.MutatingAdmissionPolicy{
			Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{MatchConstraints: constraints("pods")}},
			[]string{"pods"}, false},
		"one that checks": {ofValidatingPolicy, &admissionregistrationv1.ValidatingAdmissionPolicy{
			Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{MatchConstraints: constraints("pods")}},
			[]string{"pods"}, false},
		"one without rules":   {ofValidatingPolicy, &admissionregistrationv1.ValidatingAdmissionPolicy{}, nil, true},
		"what nobody expects": {ofMutatingPolicy, "text", nil, true},
	} {
		known := resources{}
		known.add(row.of(row.object))
		for _, resource := range row.about {
			if !known.have(resource) {
				t.Errorf("%s: it is not about %s", name, resource)
			}
		}
		if known.have("configmaps") != row.others {
			t.Errorf("%s: it is about others: %v", name, !row.others)
		}
	}
}

func write(resource string) admission.Attributes { return writeIn("", resource) }

func writeIn(namespace, resource string) admission.Attributes {
	return admission.NewAttributesRecord(nil, nil, schema.GroupVersionKind{}, namespace, "",
		schema.GroupVersionResource{Resource: resource}, "", admission.Create, nil, false, nil)
}

// A webhook or policy is about the namespaces that its selector matches; a selector that is none is about all.
func TestNamespacesThatObjectsAreAbout(t *testing.T) {
	teams := func(value string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"team": value}}
	}
	broken := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "team", Operator: "?"}}}
	hook := func(namespaces *metav1.LabelSelector, named ...string) admissionregistrationv1.ValidatingWebhook {
		return admissionregistrationv1.ValidatingWebhook{NamespaceSelector: namespaces, Rules: rules(named...)}
	}
	policy := constraints("pods")
	policy.NamespaceSelector = teams("a")
	for name, row := range map[string]struct {
		of     func(any) []subject
		object any
		in     string // the teams among a, b and c (which has no label) whose Pods it may be about
	}{
		"all":                {ofValidatingWebhooks, hooks(hook(&metav1.LabelSelector{}, "pods")), "abc"},
		"none said":          {ofValidatingWebhooks, hooks(hook(nil, "pods")), "abc"},
		"one that is broken": {ofValidatingWebhooks, hooks(hook(broken, "pods")), "abc"},
		"one":                {ofValidatingWebhooks, hooks(hook(teams("a"), "pods")), "a"},
		"one of two webhooks": {ofValidatingWebhooks,
			hooks(hook(teams("a"), "pods"), hook(teams("b"), "secrets")), "a"},
		"two": {ofValidatingWebhooks,
			hooks(hook(teams("a"), "pods"), hook(teams("b"), "pods/status")), "ab"},
		"all resources": {ofValidatingWebhooks, hooks(hook(teams("a"), "secrets"), hook(teams("b"), "*/*")), "b"},
		"who changes": {ofMutatingWebhooks, &admissionregistrationv1.MutatingWebhookConfiguration{
			Webhooks: []admissionregistrationv1.MutatingWebhook{{Rules: rules("pods"), NamespaceSelector: teams("b")}}},
			"b"},
		"a policy": {ofValidatingPolicy, &admissionregistrationv1.ValidatingAdmissionPolicy{
			Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{MatchConstraints: policy}}, "a"},
		"one that changes": {ofMutatingPolicy, &admissionregistrationv1.MutatingAdmissionPolicy{
			Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{MatchConstraints: policy}}, "a"},
		"what nobody expects": {ofMutatingWebhooks, "text", "abc"},
	} {
		known := resources{}
		known.add(row.of(row.object))
		var in string
		for _, team := range []string{"a", "b", "c"} {
			namespace := labels.Set{"team": team}
			if team == "c" {
				namespace = nil
			}
			if known.haveIn("pods", namespace) {
				in += team
			}
		}
		if in != row.in {
			t.Errorf("%s: it is about Pods of %q, want %q", name, in, row.in)
		}
	}
}

func hooks(webhooks ...admissionregistrationv1.ValidatingWebhook) any {
	return &admissionregistrationv1.ValidatingWebhookConfiguration{Webhooks: webhooks}
}

// What is written without a namespace, a namespace, and what is written to a namespace that is not known are excluded
// by the resource alone; the rest follows the labels of the namespace.
func TestExclusionByNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		named := func(name, team string) *corev1.Namespace {
			return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"team": team}}}
		}
		client := fake.NewClientset(named("this", "a"), named("other", "b"),
			&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "hook"},
				Webhooks: []admissionregistrationv1.ValidatingWebhook{{Rules: rules("pods", "nodes", "namespaces"),
					NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}}}})
		factory := informers.NewSharedInformerFactory(client, 0)
		var s subjects
		s.follow(factory.Admissionregistration().V1().ValidatingWebhookConfigurations().Informer(),
			ofValidatingWebhooks, factory)
		stop := make(chan struct{})
		factory.Start(stop)
		expect := func(namespace, resource string, excluded bool) {
			t.Helper()
			synctest.Wait()
			if s.exclude(writeIn(namespace, resource)) != excluded {
				t.Errorf("%s in %q are excluded: %v", resource, namespace, !excluded)
			}
		}
		expect("this", "pods", false)
		expect("other", "pods", true)
		expect("this", "secrets", true)
		expect("unknown", "pods", false)
		expect("", "nodes", false)
		expect("other", "namespaces", false) // its labels are those of the write
		if _, err := client.CoreV1().Namespaces().Update(t.Context(), named("other", "a"),
			metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		expect("other", "pods", false)
		close(stop)
		factory.Shutdown()
	})
}

// Nothing is excluded before all objects are known, and what is excluded follows them.
func TestExclusionFollowsTheObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hook := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "hook"},
			Webhooks: []admissionregistrationv1.ValidatingWebhook{{Rules: rules("pods")}}}
		client := fake.NewClientset([]runtime.Object{hook}...)
		factory := informers.NewSharedInformerFactory(client, 0)
		configurations := client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
		var s subjects
		s.follow(factory.Admissionregistration().V1().ValidatingWebhookConfigurations().Informer(),
			ofValidatingWebhooks, factory)
		expect := func(when string, pods, secrets bool) {
			t.Helper()
			synctest.Wait()
			if s.exclude(write("pods")) != pods || s.exclude(write("secrets")) != secrets {
				t.Errorf("%s: Pods are excluded: %v, Secrets: %v", when, !pods, !secrets)
			}
		}
		expect("nothing is known", false, false)
		stop := make(chan struct{})
		factory.Start(stop)
		expect("one is about Pods", false, true)
		hook = hook.DeepCopy()
		hook.Webhooks[0].Rules = rules("secrets")
		if _, err := configurations.Update(t.Context(), hook, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		expect("it is about Secrets now", true, false)
		if err := configurations.Delete(t.Context(), "hook", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		expect("it is gone", true, true)
		close(stop)
		factory.Shutdown()
	})
}
