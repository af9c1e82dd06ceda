package trustbundles

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

type bundle = certificatesv1.ClusterTrustBundle

func bundleOf(signer string, edits ...func(*bundle)) *bundle {
	b := &bundle{ObjectMeta: metav1.ObjectMeta{Name: "b", Labels: map[string]string{"a": "b"},
		Finalizers: []string{"example.com/f"}},
		Spec: certificatesv1.ClusterTrustBundleSpec{SignerName: signer, TrustBundle: "x"}}
	for _, edit := range edits {
		edit(b)
	}
	return b
}

// Whatever a write says of a signer's certificates, or by which labels Pods find them, is said in the signer's name.
func TestAttests(t *testing.T) {
	const signer = "example.com/web"
	text := func(b *bundle) { b.Spec.TrustBundle = "y" }
	for _, row := range []struct {
		name         string
		updated, old *bundle
		want         bool
	}{
		{"a new one", bundleOf(signer), nil, true},
		{"a new one of nobody", bundleOf(""), nil, false},
		{"other certificates", bundleOf(signer, text), bundleOf(signer), true},
		{"other certificates of nobody", bundleOf("", text), bundleOf(""), false},
		{"labels", bundleOf(signer, func(b *bundle) { b.Labels = nil }), bundleOf(signer), true},
		{"annotations", bundleOf(signer, func(b *bundle) { b.Annotations = map[string]string{"a": "b"} }),
			bundleOf(signer), true},
		{"the same", bundleOf(signer), bundleOf(signer), false},
		{"finalizers", bundleOf(signer, func(b *bundle) { b.Finalizers = nil }), bundleOf(signer), false},
		{"owners", bundleOf(signer, func(b *bundle) { b.OwnerReferences = []metav1.OwnerReference{{Name: "o"}} }),
			bundleOf(signer), false},
		{"who manages", bundleOf(signer, func(b *bundle) { b.ManagedFields = []metav1.ManagedFieldsEntry{{}} }),
			bundleOf(signer), false},
		{"finalizers and certificates", bundleOf(signer, text, func(b *bundle) { b.Finalizers = nil }),
			bundleOf(signer), true},
	} {
		updated := row.updated.DeepCopy()
		if got := attests(row.updated, row.old); got != row.want {
			t.Errorf("%s: %v, want %v", row.name, got, row.want)
		}
		if !slices.Equal(updated.Finalizers, row.updated.Finalizers) ||
			len(updated.ManagedFields) != len(row.updated.ManagedFields) {
			t.Errorf("%s: the bundle was changed", row.name)
		}
	}
}

// rights allow by verb and signer; a name that has an error gets one.
type rights struct {
	authorizer.Authorizer
	has    []string
	failed string
}

func (r rights) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	asked := a.GetVerb() + " " + a.GetName()
	switch {
	case a.GetResource() != "signers" || a.GetAPIGroup() != "certificates.k8s.io" || a.GetNamespace() != "" ||
		a.GetUser().GetName() != "bob":
		return authorizer.DecisionDeny, "", errors.New("asked for something else")
	case slices.Contains(r.has, asked):
		return authorizer.DecisionAllow, "", nil
	case asked == r.failed:
		return authorizer.DecisionNoOpinion, "", errors.New("roles are unknown")
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// withAuthorizer gives the plugin whom to ask.
type withAuthorizer struct{ authorizer.Authorizer }

// Initialize implements PluginInitializer.
func (w withAuthorizer) Initialize(p admission.Interface) { p.(*Plugin).SetAuthorizer(w.Authorizer) }

func TestValidate(t *testing.T) {
	const signer, refused = "example.com/web", `user not permitted to attest for signerName "example.com/web"`
	bundles := certificatesv1.SchemeGroupVersion.WithResource("clustertrustbundles")
	for _, row := range []struct {
		name         string
		rights       rights
		resource     schema.GroupVersionResource
		updated, old runtime.Object
		want         string // what the refusal says; empty: none
	}{
		{"with the right", rights{has: []string{"attest " + signer}}, bundles, bundleOf(signer), nil, ""},
		{"to all of the domain", rights{has: []string{"attest example.com/*"}}, bundles, bundleOf(signer), nil, ""},
		{"without", rights{}, bundles, bundleOf(signer), nil, refused},
		{"who signs", rights{has: []string{"sign " + signer, "attest *", "attest example.com/we"}}, bundles,
			bundleOf(signer), nil, refused},
		{"nobody's", rights{}, bundles, bundleOf(""), nil, ""},
		{"an update without", rights{}, bundles, bundleOf(signer, func(b *bundle) { b.Labels = nil }), bundleOf(signer),
			refused},
		{"an update of finalizers", rights{}, bundles, bundleOf(signer, func(b *bundle) { b.Finalizers = nil }),
			bundleOf(signer), ""},
		{"roles are unknown", rights{failed: "attest " + signer}, bundles, bundleOf(signer), nil,
			"asking who may attest"},
		{"another resource", rights{}, certificatesv1.SchemeGroupVersion.WithResource("certificatesigningrequests"),
			bundleOf(signer), nil, ""},
		{"what is no bundle", rights{}, bundles, &certificatesv1.CertificateSigningRequest{}, nil, "unexpected types"},
	} {
		t.Run(row.name, func(t *testing.T) {
			registered := admission.NewPlugins()
			Register(registered)
			plugin, err := registered.InitPlugin(PluginName, nil, withAuthorizer{row.rights})
			if err != nil {
				t.Fatal(err)
			}
			operation := admission.Create
			if row.old != nil {
				operation = admission.Update
			}
			err = plugin.(*Plugin).Validate(t.Context(), admission.NewAttributesRecord(row.updated, row.old,
				certificatesv1.SchemeGroupVersion.WithKind("x"), "", "b", row.resource, "", operation, nil, false,
				&user.DefaultInfo{Name: "bob"}), nil)
			if row.want == "" && err != nil ||
				row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)) {
				t.Errorf("%v, want %q", err, row.want)
			}
		})
	}
}
