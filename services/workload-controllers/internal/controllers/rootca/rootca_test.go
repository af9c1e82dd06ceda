package rootca

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const bundle = "-----BEGIN CERTIFICATE-----\n"

func active() *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"},
		Status: corev1.NamespaceStatus{Phase: corev1.NamespaceActive}}
}

func TestDecide(t *testing.T) {
	published := Decide(Input{Namespace: active(), RootCA: bundle}).Create
	if published == nil || published.Name != "kube-root-ca.crt" || published.Namespace != "team" ||
		published.Data["ca.crt"] != bundle {
		t.Fatalf("creates %+v", published)
	}
	for _, c := range []struct {
		name    string
		edit    func(*corev1.ConfigMap)
		restore bool
	}{
		{"as it must be", func(*corev1.ConfigMap) {}, false},
		{"labels of others are left alone", func(m *corev1.ConfigMap) { m.Labels = map[string]string{"x": "y"} },
			false},
		{"another bundle", func(m *corev1.ConfigMap) { m.Data["ca.crt"] = "mine" }, true},
		{"another key", func(m *corev1.ConfigMap) { m.Data["extra"] = "x" }, true},
		{"binary data", func(m *corev1.ConfigMap) { m.BinaryData = map[string][]byte{"x": {1}} }, true},
		{"without data", func(m *corev1.ConfigMap) { m.Data = nil }, true},
		{"without description", func(m *corev1.ConfigMap) { m.Annotations = nil }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			found := published.DeepCopy()
			c.edit(found)
			before := found.DeepCopy()
			plan := Decide(Input{Namespace: active(), ConfigMap: found, RootCA: bundle})
			if (plan.Update != nil) != c.restore || plan.Create != nil {
				t.Fatalf("plan %+v", plan)
			}
			if !reflect.DeepEqual(found, before) {
				t.Error("the decision changed its input")
			}
			if c.restore {
				if again := Decide(Input{Namespace: active(), ConfigMap: plan.Update,
					RootCA: bundle}); again != (Plan{}) {
					t.Errorf("a restored one is restored again: %+v", again)
				}
			}
		})
	}
	leaving := active()
	leaving.Status.Phase = corev1.NamespaceTerminating
	if plan := Decide(Input{Namespace: leaving, RootCA: bundle}); plan != (Plan{}) {
		t.Errorf("in a namespace on its way out: %+v", plan)
	}
}

// The explanation matches what the pass does.
func TestAccount(t *testing.T) {
	published := Decide(Input{Namespace: active(), RootCA: bundle}).Create
	edited, leaving := published.DeepCopy(), active()
	edited.Data[key] = "mine"
	leaving.Status.Phase = corev1.NamespaceTerminating
	for want, in := range map[string]Input{
		"in its next pass creates the ConfigMap kube-root-ca.crt": {Namespace: active(), RootCA: bundle},
		"waits for nothing: its ConfigMap kube-root-ca.crt says what it must": {Namespace: active(),
			ConfigMap: published, RootCA: bundle},
		"in its next pass restores the ConfigMap kube-root-ca.crt, which somebody has changed": {Namespace: active(),
			ConfigMap: edited, RootCA: bundle},
		"waits for nothing: it is going away, and nothing is made in it any more": {Namespace: leaving, RootCA: bundle},
	} {
		if got := account(in, Decide(in)).Explanation().Summary; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestReconcileCreatesAndRestores(t *testing.T) {
	api := fake.NewClientBuilder().WithObjects(active()).Build()
	c := &Controller{client: api, published: api, rootCA: bundle}
	request := reconcile.Request{NamespacedName: types.NamespacedName{Name: "team"}}
	key := client.ObjectKey{Namespace: "team", Name: name}
	for _, edit := range []func(*corev1.ConfigMap){nil, func(m *corev1.ConfigMap) { m.Data["ca.crt"] = "edited" }} {
		if edit != nil {
			found := &corev1.ConfigMap{}
			if err := api.Get(t.Context(), key, found); err != nil {
				t.Fatal(err)
			}
			edit(found)
			if err := api.Update(t.Context(), found); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := c.steps().Reconcile(t.Context(), request); err != nil {
			t.Fatal(err)
		}
		found := &corev1.ConfigMap{}
		if err := api.Get(t.Context(), key, found); err != nil || found.Data["ca.crt"] != bundle {
			t.Errorf("published %v, %v", found.Data, err)
		}
	}
}
