// Package denyexternalips is the admission plugin DenyServiceExternalIPs: no Service takes traffic to addresses that
// its author names. It is off unless an operator asks for it, since such addresses are part of the API.
package denyexternalips

import (
	"context"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/admission"
)

// PluginName is the name by which Kubernetes knows the plugin.
const PluginName = "DenyServiceExternalIPs"

// Plugin checks Services.
type Plugin struct{ *admission.Handler }

var _ admission.ValidationInterface = &Plugin{}

// Register makes the plugin known to the chain.
func Register(plugins *admission.Plugins) {
	plugins.Register(PluginName, func(io.Reader) (admission.Interface, error) {
		return &Plugin{admission.NewHandler(admission.Create, admission.Update)}, nil
	})
}

// Validate refuses a Service with new external IPs.
func (p *Plugin) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	updated, isService := a.GetObject().(*corev1.Service)
	if a.GetResource().GroupResource() != corev1.Resource("services") || a.GetSubresource() != "" || !isService {
		return nil
	}
	old, _ := a.GetOldObject().(*corev1.Service)
	if err := decide(updated, old); err != nil {
		return admission.NewForbidden(a, err)
	}
	return nil
}
