package resourcetest

import (
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	certificatesclient "k8s.io/client-go/kubernetes/typed/certificates/v1"

	"keelson.dev/kit/trustbundle/trustbundletest"
	"keelson.dev/services/apiserver/internal/servertest"
)

type trustBundle = certificatesv1.ClusterTrustBundle

func trustBundleOf(name, signer, text string) *trustBundle {
	return &trustBundle{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: certificatesv1.ClusterTrustBundleSpec{SignerName: signer, TrustBundle: text}}
}

// Who may write bundles writes those of a signer only if he may attest for it; accounts and nodes read them all.
func testTrustBundles(t *testing.T, s *servertest.Server) {
	ctx := t.Context()
	const signer, other = "example.com/web", "example.org/web"
	one, two := trustbundletest.Authority(t, "one"), trustbundletest.Authority(t, "two")
	writes := allows([]string{"create", "update", "patch", "delete"}, []string{"clustertrustbundles"})
	grant(t, s, "ctb-clerk", writes)
	grant(t, s, "ctb-signer", writes, allows([]string{"attest"}, []string{"signers"}, "example.com/*"))
	as := func(user string, groups ...string) certificatesclient.ClusterTrustBundleInterface {
		return impersonate(t, s, user, append(groups, "system:authenticated")...).CertificatesV1().ClusterTrustBundles()
	}
	clerk, attesting := as("ctb-clerk"), as("ctb-signer")
	must[*trustBundle](t, "making one of nobody")(clerk.Create(ctx, trustBundleOf("mine", "", one),
		metav1.CreateOptions{}))
	made := must[*trustBundle](t, "making a signer's")(attesting.Create(ctx,
		trustBundleOf("example.com:web:v1", signer, one), metav1.CreateOptions{}))
	refused := func(what string, err error) {
		t.Helper()
		if !apierrors.IsForbidden(err) ||
			!strings.Contains(err.Error(), "user not permitted to attest for signerName") {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err := clerk.Create(ctx, trustBundleOf("example.com:web:v2", signer, one), metav1.CreateOptions{})
	refused("the clerk makes a signer's", err)
	_, err = attesting.Create(ctx, trustBundleOf("example.org:web:v1", other, one), metav1.CreateOptions{})
	refused("of another domain", err)
	_, err = clerk.Patch(ctx, made.Name, types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`),
		metav1.PatchOptions{})
	refused("the clerk labels a signer's", err)
	must[*trustBundle](t, "what the garbage collector does")(clerk.Patch(ctx, made.Name, types.MergePatchType,
		[]byte(`{"metadata":{"finalizers":["example.com/x"]}}`), metav1.PatchOptions{}))
	must[*trustBundle](t, "and undoes")(clerk.Patch(ctx, made.Name, types.MergePatchType,
		[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}))
	testTrustBundleRules(t, s, made, two)
	testTrustBundleReaders(t, as, signer, two)
}

// testTrustBundleRules: what a signer's bundle may become.
func testTrustBundleRules(t *testing.T, s *servertest.Server, made *trustBundle, two string) {
	ctx, all := t.Context(), s.Client.CertificatesV1().ClusterTrustBundles()
	for path, change := range map[string]func(*trustBundle){
		"spec.signerName":  func(b *trustBundle) { b.Spec.SignerName = "example.com/other" },
		"spec.trustBundle": func(b *trustBundle) { b.Spec.TrustBundle = "hello" },
	} {
		now := must[*trustBundle](t, "reading")(all.Get(ctx, made.Name, metav1.GetOptions{}))
		change(now)
		_, err := all.Update(ctx, now, metav1.UpdateOptions{})
		refusedAt(t, err, path)
	}
	for path, b := range map[string]*trustBundle{
		"metadata.name":    trustBundleOf("wrong", "example.com/web", two),
		"spec.trustBundle": trustBundleOf("two", "", two+two),
	} {
		_, err := all.Create(ctx, b, metav1.CreateOptions{})
		refusedAt(t, err, path)
	}
	named := trustBundleOf("", "example.com/web", two)
	named.GenerateName = "example.com:web:"
	made = must[*trustBundle](t, "leaving the name to the server")(all.Create(ctx, named, metav1.CreateOptions{}))
	if !strings.HasPrefix(made.Name, named.GenerateName) || made.Generation != 0 {
		t.Errorf("made is %+v", made.ObjectMeta)
	}
}

// testTrustBundleReaders: a node and an account list and watch by the signer, and write nothing.
func testTrustBundleReaders(t *testing.T,
	as func(string, ...string) certificatesclient.ClusterTrustBundleInterface, signer, two string) {
	ctx := t.Context()
	bySigner := metav1.ListOptions{FieldSelector: "spec.signerName=" + signer}
	for name, reader := range map[string]certificatesclient.ClusterTrustBundleInterface{
		"a node":     as("system:node:n1", "system:nodes"),
		"an account": as("system:serviceaccount:default:default", "system:serviceaccounts"),
	} {
		list := must[*certificatesv1.ClusterTrustBundleList](t, name+" lists")(reader.List(ctx, bySigner))
		if len(list.Items) != 2 {
			t.Errorf("%s sees %d of the signer", name, len(list.Items))
		}
		after := bySigner
		after.ResourceVersion = list.ResourceVersion
		events := must[watch.Interface](t, name+" watches")(reader.Watch(ctx, after))
		attesting := as("ctb-signer")
		must[*trustBundle](t, "nobody's")(attesting.Patch(ctx, "mine", types.MergePatchType,
			[]byte(`{"metadata":{"labels":{"for":"`+strings.Fields(name)[1]+`"}}}`), metav1.PatchOptions{}))
		changed := must[*trustBundle](t, "changing")(attesting.Patch(ctx, "example.com:web:v1", types.MergePatchType,
			[]byte(`{"metadata":{"labels":{"for":"`+strings.Fields(name)[1]+`"}}}`), metav1.PatchOptions{}))
		event := <-events.ResultChan()
		if got, is := event.Object.(*trustBundle); !is || got.ResourceVersion != changed.ResourceVersion {
			t.Errorf("%s is told of %+v", name, event)
		}
		events.Stop()
		_, err := reader.Create(ctx, trustBundleOf("more", "", two), metav1.CreateOptions{})
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s makes one: %v", name, err)
		}
	}
}
