package trustbundle

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"keelson.dev/services/workload-controllers/internal/write"
)

const (
	signer    = "kubernetes.io/kube-apiserver-serving"
	published = "kubernetes.io:kube-apiserver-serving:ca978112ca1bbdcafac231b3" // of "a"
)

func bundleOf(name, text string) bundle {
	return bundle{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: certificatesv1.ClusterTrustBundleSpec{SignerName: signer, TrustBundle: text}}
}

func leaving(b bundle) bundle {
	b.DeletionTimestamp, b.Finalizers = &metav1.Time{}, []string{"example.com/f"}
	return b
}

func TestDecide(t *testing.T) {
	right := bundleOf(published, "a")
	former, edited := bundleOf("kubernetes.io:kube-apiserver-serving:former", "b"), bundleOf(published, "b")
	labelled := *right.DeepCopy()
	labelled.Labels = map[string]string{"a": "b"}
	for _, row := range []struct {
		name    string
		bundles []bundle
		want    string
	}{
		{"nothing is there", nil, "create " + published},
		{"it is there", []bundle{right}, ""},
		{"labels of others are left alone", []bundle{labelled}, ""},
		{"somebody has changed it", []bundle{edited}, "update " + published},
		{"only a former one", []bundle{former}, "create " + published},
		{"a former one beside it", []bundle{former, right}, "delete " + former.Name},
		{"a former one beside what has changed", []bundle{former, edited}, "update " + published},
		{"a former one that goes", []bundle{leaving(former), right}, ""},
		{"it goes itself", []bundle{leaving(right)}, ""},
		{"a former one beside one that goes", []bundle{leaving(right), former}, "delete " + former.Name},
	} {
		before := slices.Clone(row.bundles)
		plan := Decide(Input{Bundles: row.bundles, RootCA: "a"})
		if got := effects(plan); got != row.want {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
		for _, made := range []*bundle{plan.Create, plan.Update} {
			if made != nil && (made.Spec.TrustBundle != "a" || made.Spec.SignerName != signer) {
				t.Errorf("%s: makes %+v", row.name, made.Spec)
			}
		}
		for i := range before {
			if before[i].Spec != row.bundles[i].Spec {
				t.Errorf("%s: the decision changed its input", row.name)
			}
		}
	}
}

func effects(plan Plan) string {
	text := ""
	if plan.Create != nil {
		text += "create " + plan.Create.Name
	}
	if plan.Update != nil {
		text += "update " + plan.Update.Name
	}
	for _, b := range plan.Delete {
		text += "delete " + b.Name
	}
	return text
}

// A few passes always leave exactly one bundle, and no pass leaves none if there was one.
func TestPassesEndWithOneBundle(t *testing.T) {
	names := []string{published, "kubernetes.io:kube-apiserver-serving:b", "kubernetes.io:kube-apiserver-serving:c"}
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		var bundles []bundle
		for _, name := range names {
			if r.IntN(2) == 0 {
				bundles = append(bundles, bundleOf(name, []string{"a", "b"}[r.IntN(2)]))
			}
		}
		for range 3 {
			had := len(bundles) > 0
			plan := Decide(Input{Bundles: bundles, RootCA: "a"})
			bundles = slices.DeleteFunc(bundles, func(b bundle) bool {
				return slices.ContainsFunc(plan.Delete, func(d *bundle) bool { return d.Name == b.Name }) ||
					plan.Update != nil && plan.Update.Name == b.Name
			})
			for _, made := range []*bundle{plan.Create, plan.Update} {
				if made != nil {
					bundles = append(bundles, *made)
				}
			}
			if had && len(bundles) == 0 {
				t.Fatalf("seed %d: none is left", seed)
			}
		}
		if len(bundles) != 1 || bundles[0].Name != published || bundles[0].Spec.TrustBundle != "a" {
			t.Fatalf("seed %d: there are %+v", seed, bundles)
		}
	}
}

// The explanation matches what the pass does.
func TestAccount(t *testing.T) {
	right, former := bundleOf(published, "a"), bundleOf("former", "b")
	for _, row := range []struct {
		name    string
		bundles []bundle
		want    string
	}{
		{published, []bundle{right}, "waits for nothing: it holds the CA by which the apiserver is known"},
		{published, []bundle{bundleOf(published, "b")},
			"in its next pass restores the certificates of " + published + ", which somebody has changed"},
		{"former", []bundle{right, former},
			"in its next pass deletes it: it holds another CA than the apiserver's"},
		{"former", []bundle{former}, "in its next pass creates the ClusterTrustBundle " + published},
		{"former", []bundle{right, leaving(former)},
			"waits for nothing: it holds another CA than the apiserver's, and goes"},
	} {
		in := Input{Bundles: row.bundles, RootCA: "a"}
		if got := account(in, Decide(in), row.name).Explanation().Summary; got != row.want {
			t.Errorf("%q, want %q", got, row.want)
		}
	}
}

// A pass writes what it decides; a concurrent change by another writer is no failure, a refusal is.
func TestReconcile(t *testing.T) {
	former := bundleOf("kubernetes.io:kube-apiserver-serving:former", "b")
	api := fake.NewClientBuilder().WithObjects(&former).Build()
	c := &Controller{published: api, rootCA: "a", writer: &write.Writer{Client: api, Kind: "clustertrustbundle"}}
	left := func() (names []string) {
		list := &certificatesv1.ClusterTrustBundleList{}
		if err := api.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		for _, b := range list.Items {
			names = append(names, b.Name+" "+b.Spec.TrustBundle)
		}
		return names
	}
	for _, want := range [][]string{{published + " a", former.Name + " b"}, {published + " a"}, {published + " a"}} {
		if _, err := c.Reconcile(t.Context(), pass); err != nil {
			t.Fatal(err)
		}
		if got := left(); !slices.Equal(got, want) {
			t.Errorf("there are %q, want %q", got, want)
		}
	}
	edited := &bundle{}
	if err := api.Get(t.Context(), client.ObjectKey{Name: published}, edited); err != nil {
		t.Fatal(err)
	}
	edited.Spec.TrustBundle = "mine"
	if err := errors.Join(api.Update(t.Context(), edited), second(c.Reconcile(t.Context(), pass))); err != nil {
		t.Fatal(err)
	}
	if got := left(); !slices.Equal(got, []string{published + " a"}) {
		t.Errorf("after an edit there are %q", got)
	}
	if e, known := c.explain(t.Context(), "", published); !known ||
		e.Summary != "waits for nothing: it holds the CA by which the apiserver is known" {
		t.Errorf("told is %+v, %v", e, known)
	}
	if e, known := c.explain(t.Context(), "", "another"); known {
		t.Errorf("told of another signer's is %+v", e)
	}
}

func second[T any](_ T, err error) error { return err }

func TestWhatIsTolerated(t *testing.T) {
	resource, broken := certificatesv1.Resource("clustertrustbundles"), errors.New("no answer")
	for _, row := range []struct{ err, want error }{
		{nil, nil},
		{apierrors.NewAlreadyExists(resource, published), nil},
		{apierrors.NewConflict(resource, published, broken), nil},
		{apierrors.NewNotFound(resource, published), nil},
		{broken, broken},
	} {
		for doing, bundles := range map[string][]bundle{"creating": nil, "restoring": {bundleOf(published, "b")},
			"deleting": {bundleOf(published, "a"), bundleOf("former", "b")}} {
			list := &certificatesv1.ClusterTrustBundleList{Items: bundles}
			refuse := func() error { return row.err }
			api := interceptor.NewClient(fake.NewClientBuilder().WithLists(list).Build(), refusing(refuse))
			c := &Controller{published: api, rootCA: "a", writer: &write.Writer{Client: api, Kind: "x"}}
			err := second(c.Reconcile(t.Context(), pass))
			if !errors.Is(err, row.want) || (err == nil) != (row.want == nil) {
				t.Errorf("%s and %v: %v", doing, row.err, err)
			}
		}
	}
}

// refusing returns interceptors that answer every write with refuse.
func refusing(refuse func() error) interceptor.Funcs {
	type (
		api    = client.WithWatch
		object = client.Object
	)
	return interceptor.Funcs{
		Create: func(context.Context, api, object, ...client.CreateOption) error { return refuse() },
		Update: func(context.Context, api, object, ...client.UpdateOption) error { return refuse() },
		Delete: func(context.Context, api, object, ...client.DeleteOption) error { return refuse() },
	}
}
