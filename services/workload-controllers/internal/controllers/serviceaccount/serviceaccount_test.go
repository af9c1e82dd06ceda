package serviceaccount

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func namespace(changes ...func(*corev1.Namespace)) *corev1.Namespace {
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"},
		Status: corev1.NamespaceStatus{Phase: corev1.NamespaceActive}}
	for _, change := range changes {
		change(n)
	}
	return n
}

func TestDecide(t *testing.T) {
	for _, c := range []struct {
		name   string
		in     Input
		create bool
	}{
		{"a namespace without one", Input{Namespace: namespace()}, true},
		{"a namespace with one", Input{Namespace: namespace(), Exists: true}, false},
		{"a namespace on its way out",
			Input{Namespace: namespace(func(n *corev1.Namespace) { n.Status.Phase = corev1.NamespaceTerminating })},
			false},
		{"a namespace that is told to go",
			Input{Namespace: namespace(func(n *corev1.Namespace) { n.DeletionTimestamp = &metav1.Time{} })}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			account := Decide(c.in)
			if (account != nil) != c.create {
				t.Fatalf("creates %v", account)
			}
			if account != nil && (account.Name != "default" || account.Namespace != "team") {
				t.Errorf("creates %s/%s", account.Namespace, account.Name)
			}
		})
	}
}

// The cache may be behind: a ServiceAccount that exists is no error. A failure is one, so that the namespace is
// tried again.
func TestReconcileToleratesWhatExists(t *testing.T) {
	request := reconcile.Request{NamespacedName: types.NamespacedName{Name: "team"}}
	blind := interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey,
		object client.Object, opts ...client.GetOption) error {
		if _, ok := object.(*corev1.ServiceAccount); ok {
			key.Name = "unseen"
		}
		return c.Get(ctx, key, object, opts...)
	}}
	existing := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "team"}}
	c := &Controller{client: fake.NewClientBuilder().WithObjects(namespace(),
		existing).WithInterceptorFuncs(blind).Build()}
	if _, err := c.steps().Reconcile(t.Context(), request); err != nil {
		t.Errorf("with an account that the cache does not show: %v", err)
	}
	failing := interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object,
		...client.CreateOption) error {
		return context.DeadlineExceeded
	}}
	c.client = fake.NewClientBuilder().WithObjects(namespace()).WithInterceptorFuncs(failing).Build()
	if _, err := c.steps().Reconcile(t.Context(), request); err == nil {
		t.Error("a failed creation is no error")
	}
	c.client = fake.NewClientBuilder().Build()
	if _, err := c.steps().Reconcile(t.Context(), request); err != nil {
		t.Errorf("of a namespace that is gone: %v", err)
	}
}

// The explanation matches what the pass does.
func TestAccount(t *testing.T) {
	leaving := namespace(func(n *corev1.Namespace) { n.Status.Phase = corev1.NamespaceTerminating })
	const stands = "waits for nothing: "
	for want, in := range map[string]Input{
		"in its next pass creates the ServiceAccount default":           {Namespace: namespace()},
		stands + "it has the ServiceAccount default":                    {Namespace: namespace(), Exists: true},
		stands + "it is going away, and nothing is made in it any more": {Namespace: leaving},
	} {
		if got := account(in, Decide(in)).Explanation().Summary; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// The explanation says what happens to the ServiceAccount and its Pods when it is deleted.
func TestStanding(t *testing.T) {
	account := func(name string, edits ...func(*corev1.ServiceAccount)) *corev1.ServiceAccount {
		a := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
		for _, edit := range edits {
			edit(a)
		}
		return a
	}
	going := func(a *corev1.ServiceAccount) { a.DeletionTimestamp = &metav1.Time{} }
	mounts := func(mounts bool) func(*corev1.ServiceAccount) {
		return func(a *corev1.ServiceAccount) { a.AutomountServiceAccountToken = &mounts }
	}
	const (
		named = "Pods that name it have it; it is a user's own, and nobody makes it anew where somebody deletes it"
		none  = "Pods that name no ServiceAccount have it; it is made anew where somebody deletes it, as long as its " +
			"namespace stays"
	)
	for _, row := range []struct {
		account *corev1.ServiceAccount
		want    string
	}{
		{account(name), none},
		{account(name, mounts(true)), none},
		{account(name, going), "it is being deleted, and is made anew when it is gone, unless its namespace goes too"},
		{account("robot"), named},
		{account("robot", mounts(false)), named + "; its Pods get no token unless they ask for one: its " +
			"automountServiceAccountToken is false"},
		{account("robot", going), "it is being deleted, and nobody makes it anew"},
	} {
		if got := standing(row.account).Explanation().Summary; got != "waits for nothing: "+row.want {
			t.Errorf("%q, want %q", got, row.want)
		}
	}
	c := &Controller{client: fake.NewClientBuilder().WithObjects(account("robot")).Build()}
	if e, known := c.explainAccount(t.Context(), "team", "robot"); !known || e.Summary != "waits for nothing: "+named {
		t.Errorf("%q, %t", e.Summary, known)
	}
	for _, elsewhere := range [][2]string{{"team", "nosuch"}, {"other", "robot"}} {
		if _, known := c.explainAccount(t.Context(), elsewhere[0], elsewhere[1]); known {
			t.Errorf("%v is known", elsewhere)
		}
	}
}
