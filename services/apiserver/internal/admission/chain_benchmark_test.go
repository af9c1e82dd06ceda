package admission

import (
	"fmt"
	goruntime "runtime"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/openapi"
)

// BenchmarkNothingMatches is what a write pays for webhooks and policies of which none is about it.
func BenchmarkNothingMatches(b *testing.B) {
	elsewhere := func(hook string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"team": "of-" + hook}}
	}
	everywhere := func(string) *metav1.LabelSelector { return &metav1.LabelSelector{} }
	for _, of := range []struct {
		name     string
		webhooks int
		selector func(hook string) *metav1.LabelSelector
		resource string
	}{
		{"none", 0, everywhere, ""},
		{"20 about other resources", 20, everywhere, "pods"},
		{"20 about other namespaces", 20, elsewhere, "configmaps"},
	} {
		b.Run(of.name, func(b *testing.B) {
			chain := webhooksOnly(b, configured(of.webhooks, of.selector, of.resource)...)
			object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "here", Name: "made"}}
			o := admission.NewObjectInterfacesFromScheme(scheme.Scheme)
			by := &user.DefaultInfo{Name: "ann"}
			b.ReportAllocs()
			for b.Loop() {
				a := admission.NewAttributesRecord(object, nil, corev1.SchemeGroupVersion.WithKind("ConfigMap"), "here",
					"made", corev1.SchemeGroupVersion.WithResource("configmaps"), "", admission.Create,
					&metav1.CreateOptions{}, false, by)
				if err := chain.(admission.MutationInterface).Admit(b.Context(), a, o); err != nil {
					b.Fatal(err)
				}
				if err := chain.(admission.ValidationInterface).Validate(b.Context(), a, o); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkKept measures the memory that is kept for webhooks and policies if there are none.
func BenchmarkKept(b *testing.B) {
	var before, after goruntime.MemStats
	for b.Loop() {
		goruntime.GC()
		goruntime.ReadMemStats(&before)
		chain := webhooksOnly(b)
		goruntime.GC()
		goruntime.ReadMemStats(&after)
		goruntime.KeepAlive(chain)
	}
	b.ReportMetric(float64(after.HeapAlloc)-float64(before.HeapAlloc), "B-kept")
}

// configured are a namespace, and as many webhooks of each kind in configurations of their own.
func configured(n int, selector func(hook string) *metav1.LabelSelector, resource string) []runtime.Object {
	objects := []runtime.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "here",
		Labels: map[string]string{"team": "this"}}}}
	rules := []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
		Rule: admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"},
			Resources: []string{resource}}}}
	for i := range n {
		name := fmt.Sprintf("hook-%d", i)
		selector := selector(name)
		objects = append(objects, &admissionregistrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Webhooks: []admissionregistrationv1.ValidatingWebhook{{Name: name, Rules: rules,
				NamespaceSelector: selector, ObjectSelector: &metav1.LabelSelector{},
				MatchPolicy: new(admissionregistrationv1.Equivalent)}}},
			&admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name},
				Webhooks: []admissionregistrationv1.MutatingWebhook{{Name: name, Rules: rules,
					NamespaceSelector: selector, ObjectSelector: &metav1.LabelSelector{},
					MatchPolicy: new(admissionregistrationv1.Equivalent)}}})
	}
	return objects
}

// webhooksOnly is the part of the chain that users configure, with what is configured.
func webhooksOnly(b *testing.B, objects ...runtime.Object) admission.Interface {
	b.Helper()
	c := complete(b)
	client := fake.NewClientset(objects...)
	c.Client, c.Informers = withoutDocuments{client}, informers.NewSharedInformerFactory(client, time.Hour)
	chain, err := build(only("MutatingAdmissionPolicy", "MutatingAdmissionWebhook", "ValidatingAdmissionPolicy",
		"ValidatingAdmissionWebhook"), nil, c.initializers())
	if err != nil {
		b.Fatal(err)
	}
	c.Informers.Start(c.Drained)
	c.Informers.WaitForCacheSync(c.Drained)
	return chain
}

// withoutDocuments is a client of a server without OpenAPI.
type withoutDocuments struct{ kubernetes.Interface }

// Discovery implements kubernetes.Interface.
func (c withoutDocuments) Discovery() discovery.DiscoveryInterfaces {
	return noDocuments{c.Interface.Discovery()}
}

type noDocuments struct{ discovery.DiscoveryInterfaces }

// OpenAPIV3 implements discovery.DiscoveryInterface.
func (noDocuments) OpenAPIV3() openapi.Client { return nothing{} }

type nothing struct{}

// Paths implements openapi.Client.
func (nothing) Paths() (map[string]openapi.GroupVersion, error) { return nil, nil }
