// Package certificaterequests holds the admission plugins of CertificateSigningRequests. CertificateApproval lets users
// approve and deny a request who have the verb approve on its signer. CertificateSigning lets users issue a certificate
// or let the request fail who have the verb sign. CertificateSubjectRestriction refuses requests for a certificate by
// which its holder may do everything.
package certificaterequests

import (
	"context"
	"errors"
	"fmt"
	"io"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"keelson.dev/services/apiserver/internal/admission/signerrights"
)

// The names by which Kubernetes knows the plugins.
const (
	Approval           = "CertificateApproval"
	Signing            = "CertificateSigning"
	SubjectRestriction = "CertificateSubjectRestriction"
)

// RegisterApproval makes CertificateApproval known to the chain.
func RegisterApproval(plugins *admission.Plugins) {
	register(plugins, Approval, func() admission.Interface {
		return &signerRight{Handler: admission.NewHandler(admission.Update), subresource: "approval", verb: "approve",
			concerns: func(_, _ *certificatesv1.CertificateSigningRequest) bool { return true }}
	})
}

// RegisterSigning makes CertificateSigning known to the chain.
func RegisterSigning(plugins *admission.Plugins) {
	register(plugins, Signing, func() admission.Interface {
		return &signerRight{Handler: admission.NewHandler(admission.Update), subresource: "status", verb: "sign",
			concerns: signs}
	})
}

// RegisterSubjectRestriction makes CertificateSubjectRestriction known to the chain.
func RegisterSubjectRestriction(plugins *admission.Plugins) {
	register(plugins, SubjectRestriction, func() admission.Interface {
		return &subjects{admission.NewHandler(admission.Create)}
	})
}

func register(plugins *admission.Plugins, name string, plugin func() admission.Interface) {
	plugins.Register(name, func(io.Reader) (admission.Interface, error) { return plugin(), nil })
}

// signerRight asks whether who writes a subresource of a request has a verb on the request's signer.
type signerRight struct {
	*admission.Handler
	authorizer        authorizer.Authorizer
	subresource, verb string
	// concerns reports whether the write needs the right.
	concerns func(updated, old *certificatesv1.CertificateSigningRequest) bool
}

var (
	_ admission.ValidationInterface     = &signerRight{}
	_ initializer.WantsAuthorizer       = &signerRight{}
	_ admission.InitializationValidator = &signerRight{}
	_ admission.ValidationInterface     = &subjects{}
)

// SetAuthorizer implements WantsAuthorizer.
func (p *signerRight) SetAuthorizer(a authorizer.Authorizer) { p.authorizer = a }

// ValidateInitialization implements InitializationValidator.
func (p *signerRight) ValidateInitialization() error {
	if p.authorizer == nil {
		return errors.New("it has nobody to ask for rights")
	}
	return nil
}

// Validate refuses who lacks the verb. The signer's name is the stored request's, which no write changes.
func (p *signerRight) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if !isRequest(a) || a.GetSubresource() != p.subresource {
		return nil
	}
	updated, is := a.GetObject().(*certificatesv1.CertificateSigningRequest)
	old, was := a.GetOldObject().(*certificatesv1.CertificateSigningRequest)
	if !is || !was {
		return admission.NewForbidden(a, fmt.Errorf("unexpected types %T and %T", a.GetObject(), a.GetOldObject()))
	}
	if !p.concerns(updated, old) {
		return nil
	}
	allowed, err := signerrights.Allowed(ctx, p.authorizer, a.GetUserInfo(), p.verb, old.Spec.SignerName)
	if err != nil {
		return admission.NewForbidden(a, err)
	}
	if !allowed {
		return admission.NewForbidden(a, fmt.Errorf("user not permitted to %s requests with signerName %q", p.verb,
			old.Spec.SignerName))
	}
	return nil
}

// subjects is CertificateSubjectRestriction.
type subjects struct{ *admission.Handler }

// Validate refuses a request for everything.
func (p *subjects) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	asked, is := a.GetObject().(*certificatesv1.CertificateSigningRequest)
	if !isRequest(a) || a.GetSubresource() != "" || !is {
		return nil
	}
	if err := checkSubject(asked); err != nil {
		return admission.NewForbidden(a, err)
	}
	return nil
}

func isRequest(a admission.Attributes) bool {
	return a.GetResource().GroupResource() == certificatesv1.Resource("certificatesigningrequests")
}
