package namespace

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"keelson.dev/kit/introspect"
)

func said(e introspect.Explanation) string {
	all := []string{e.Summary}
	for _, fact := range e.Facts {
		all = append(all, fact.Reason+": "+fact.Message)
	}
	return strings.Join(all, "\n")
}

// What holds a namespace is told from the decision that was made, by each of its causes.
func TestAccount(t *testing.T) {
	ns := deleted(time.Minute)
	for want, in := range map[string]Input{
		"in its next pass lets it go: it is empty\nNext: lets it go: it is empty": {},
		"waits for what is in it to be gone: pods has 2 resource instances\nSomeResourcesRemain: waits for what is " +
			"in it to be gone: pods has 2 resource instances since 2026-03-01T11:59:00Z; it ends when all of it is, " +
			"Pods within their grace periods and before anything else; the next look is within 10s": {
			Remaining: []Content{{Resource: "pods", Count: 2}}},
		"waits for whoever is responsible for these finalizers: a/b in 1 resource instances; waits for what is in": {
			Remaining: []Content{{Resource: "pods", Count: 1, Finalizers: map[string]int{"a/b": 1}}}},
		"waits for deletions to succeed that failed: pods: refused; waits for the resources of these groups to be " +
			"readable: x/v1\n": {Failures: []string{"pods: refused"}, Undiscovered: []string{"x/v1"}},
	} {
		in.Namespace, in.Now = ns, now
		if got := said(account(in, Decide(in)).Explanation()); !strings.HasPrefix(got, want) {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}

// The last look is told; explaining never looks itself, since a look deletes.
func TestExplain(t *testing.T) {
	ns := deleted(time.Minute)
	ns.UID = "uid"
	finalized := deleted(time.Minute)
	finalized.Name, finalized.Spec.Finalizers = "held", []corev1.FinalizerName{"example.com/x"}
	finalized.Finalizers = []string{"a/b"}
	ns.Finalizers = []string{"a/b"}
	alive := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "alive"}}
	c := &collector{live: fake.NewClientBuilder().WithObjects(ns, finalized, alive).Build(),
		last: decisions{of: map[types.UID]decision{}}}
	expect := func(name, want string) {
		t.Helper()
		got, known := c.explain(t.Context(), "", name)
		if got.Summary != want || known != (want != "") {
			t.Errorf("%s: %q, %t, want %q", name, got.Summary, known, want)
		}
	}
	expect("web", "in its next pass begins to empty it")
	c.last.decide(Input{Namespace: ns, Remaining: []Content{{Resource: "secrets", Count: 3}}, Now: now})
	expect("web", "waits for what is in it to be gone: secrets has 3 resource instances")
	c.last.forget("uid")
	expect("web", "in its next pass begins to empty it")
	expect("held", "waits for whoever is responsible for its spec.finalizers: [example.com/x]")
	expect("alive", "waits for nothing: it is not being deleted")
	expect("gone", "")
}
