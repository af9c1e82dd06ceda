// Package trustbundles is the admission plugin ClusterTrustBundleAttest: who writes a ClusterTrustBundle of a signer
// has the verb attest on the signer.
package trustbundles

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

// PluginName is the name by which Kubernetes knows the plugin.
const PluginName = "ClusterTrustBundleAttest"

// Plugin asks whether who writes a signer's bundle may.
type Plugin struct {
	*admission.Handler
	authorizer authorizer.Authorizer
}

var (
	_ admission.ValidationInterface     = &Plugin{}
	_ initializer.WantsAuthorizer       = &Plugin{}
	_ admission.InitializationValidator = &Plugin{}
)

// Register makes the plugin known to the chain.
func Register(plugins *admission.Plugins) {
	plugins.Register(PluginName, func(io.Reader) (admission.Interface, error) {
		return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update)}, nil
	})
}

// SetAuthorizer implements WantsAuthorizer.
func (p *Plugin) SetAuthorizer(a authorizer.Authorizer) { p.authorizer = a }

// ValidateInitialization implements InitializationValidator.
func (p *Plugin) ValidateInitialization() error {
	if p.authorizer == nil {
		return errors.New("it has nobody to ask for rights")
	}
	return nil
}

// Validate refuses who lacks the verb. No write that is valid changes the signer's name.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetResource().GroupResource() != certificatesv1.Resource("clustertrustbundles") {
		return nil
	}
	updated, is := a.GetObject().(*certificatesv1.ClusterTrustBundle)
	old, was := a.GetOldObject().(*certificatesv1.ClusterTrustBundle)
	if !is || !was && a.GetOperation() == admission.Update {
		return admission.NewForbidden(a, fmt.Errorf("unexpected types %T and %T", a.GetObject(), a.GetOldObject()))
	}
	if !attests(updated, old) {
		return nil
	}
	signer := updated.Spec.SignerName
	allowed, err := signerrights.Allowed(ctx, p.authorizer, a.GetUserInfo(), "attest", signer)
	if err != nil {
		return admission.NewForbidden(a, err)
	}
	if !allowed {
		return admission.NewForbidden(a, fmt.Errorf("user not permitted to attest for signerName %q", signer))
	}
	return nil
}
