package asked

import (
	"testing"
	"testing/synctest"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
		of     func(any) []string
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
		var known resources
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

func write(resource string) admission.Attributes {
	return admission.NewAttributesRecord(nil, nil, schema.GroupVersionKind{}, "", "",
		schema.GroupVersionResource{Resource: resource}, "", admission.Create, nil, false, nil)
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
			ofValidatingWebhooks)
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
