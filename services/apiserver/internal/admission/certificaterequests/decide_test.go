package certificaterequests

import (
	"context"
	"crypto/x509/pkix"
	"errors"
	"slices"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"keelson.dev/kit/certrequest/certrequesttest"
)

func asking(t *testing.T, signer string, groups ...string) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	r := &certificatesv1.CertificateSigningRequest{}
	r.Name = "ann"
	r.Spec.SignerName = signer
	r.Spec.Request = certrequesttest.For(t, pkix.Name{CommonName: "ann", Organization: groups})
	return r
}

// A certificate never makes its holder a member of system:masters, whatever else it says of him.
func TestCheckSubject(t *testing.T) {
	const client = certificatesv1.KubeAPIServerClientSignerName
	unreadable := asking(t, client)
	unreadable.Spec.Request = []byte("hello")
	for _, row := range []struct {
		name  string
		asked *certificatesv1.CertificateSigningRequest
		want  string // what the refusal says; empty: none
	}{
		{"nobody in particular", asking(t, client), ""},
		{"a reader", asking(t, client, "readers"), ""},
		{"alike", asking(t, client, "system:masters2", "System:masters"), ""},
		{"everything", asking(t, client, "system:masters"),
			"use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed"},
		{"everything and more", asking(t, client, "readers", "system:masters"), "use of kubernetes.io/kube-api"},
		{"another signer's matter", asking(t, "example.com/clients", "system:masters"), ""},
		{"unreadable", unreadable, "spec.request: PEM block type"},
	} {
		err := checkSubject(row.asked)
		if row.want == "" && err != nil || row.want != "" && (err == nil || !strings.HasPrefix(err.Error(), row.want)) {
			t.Errorf("%s: %v, want %q", row.name, err, row.want)
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
	case a.GetResource() != "signers" || a.GetAPIGroup() != "certificates.k8s.io" || a.GetNamespace() != "":
		return authorizer.DecisionDeny, "", errors.New("asked for something else")
	case slices.Contains(r.has, asked):
		return authorizer.DecisionAllow, "", nil
	case asked == r.failed:
		return authorizer.DecisionNoOpinion, "", errors.New("roles are unknown")
	}
	return authorizer.DecisionNoOpinion, "", nil
}

func TestSignerRight(t *testing.T) {
	const signer, other = "example.com/clients", "example.com/servers"
	plugin := func(name string, r rights) *signerRight {
		registered := admission.NewPlugins()
		RegisterApproval(registered)
		RegisterSigning(registered)
		chain, err := registered.InitPlugin(name, nil, withAuthorizer{r})
		if err != nil {
			t.Fatal(err)
		}
		return chain.(*signerRight)
	}
	for _, row := range []struct {
		name, plugin, subresource string
		rights                    rights
		write                     func(*certificatesv1.CertificateSigningRequest)
		want                      string // what the refusal says; empty: none
	}{
		{"approving", Approval, "approval", rights{has: []string{"approve " + signer}}, approve, ""},
		{"approving all of a domain", Approval, "approval", rights{has: []string{"approve example.com/*"}}, approve,
			""},
		{"approving without a right", Approval, "approval", rights{}, approve,
			`user not permitted to approve requests with signerName "example.com/clients"`},
		{"who signs", Approval, "approval", rights{has: []string{"sign " + signer}}, approve,
			"user not permitted to approve"},
		{"of another signer", Approval, "approval", rights{has: []string{"approve " + other, "approve *"}}, approve,
			"user not permitted to approve"},
		{"another signer's name in the write", Approval, "approval", rights{has: []string{"approve " + other}},
			func(r *certificatesv1.CertificateSigningRequest) { approve(r); r.Spec.SignerName = other },
			"user not permitted to approve"},
		{"nothing is approved", Approval, "approval", rights{}, func(*certificatesv1.CertificateSigningRequest) {},
			"user not permitted to approve"},
		{"roles are unknown", Approval, "approval", rights{failed: "approve " + signer}, approve, "asking who may"},
		{"no approval", Approval, "status", rights{}, approve, ""},
		{"signing", Signing, "status", rights{has: []string{"sign " + signer}}, issue, ""},
		{"signing all of a domain", Signing, "status", rights{has: []string{"sign example.com/*"}}, issue, ""},
		{"signing without a right", Signing, "status", rights{}, issue,
			`user not permitted to sign requests with signerName "example.com/clients"`},
		{"who approves", Signing, "status", rights{has: []string{"approve " + signer}}, issue,
			"user not permitted to sign"},
		{"letting it fail", Signing, "status", rights{}, fail, "user not permitted to sign"},
		{"labels", Signing, "status", rights{}, func(r *certificatesv1.CertificateSigningRequest) {
			r.Labels = map[string]string{"a": "b"}
		}, ""},
		{"no signing", Signing, "", rights{}, issue, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			old := asking(t, signer)
			updated := old.DeepCopy()
			row.write(updated)
			err := plugin(row.plugin, row.rights).Validate(t.Context(), attributes(updated, old, row.subresource), nil)
			if row.want == "" && err != nil ||
				row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)) {
				t.Errorf("%v, want %q", err, row.want)
			}
		})
	}
}

// withAuthorizer gives plugins whom to ask.
type withAuthorizer struct{ authorizer.Authorizer }

// Initialize implements PluginInitializer.
func (w withAuthorizer) Initialize(p admission.Interface) {
	p.(*signerRight).SetAuthorizer(w.Authorizer)
}

func attributes(updated, old runtime.Object, subresource string) admission.Attributes {
	resource := certificatesv1.SchemeGroupVersion.WithResource("certificatesigningrequests")
	return admission.NewAttributesRecord(updated, old, certificatesv1.SchemeGroupVersion.WithKind("x"), "", "ann",
		resource, subresource, admission.Update, nil, false, &user.DefaultInfo{Name: "bob"})
}

func approve(r *certificatesv1.CertificateSigningRequest) { set(r, certificatesv1.CertificateApproved) }

func fail(r *certificatesv1.CertificateSigningRequest) { set(r, certificatesv1.CertificateFailed) }

func issue(r *certificatesv1.CertificateSigningRequest) { r.Status.Certificate = []byte("x") }

func set(r *certificatesv1.CertificateSigningRequest, kind certificatesv1.RequestConditionType) {
	r.Status.Conditions = append(r.Status.Conditions,
		certificatesv1.CertificateSigningRequestCondition{Type: kind, Status: "True"})
}
