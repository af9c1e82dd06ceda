// Package storageprotection is the admission plugin StorageObjectInUseProtection: a claim that a Pod uses and a volume
// that is bound to a claim outlive their deletion until that ends.
package storageprotection

import (
	"context"
	"io"

	"k8s.io/apiserver/pkg/admission"
)

// PluginName is the name by which Kubernetes knows the plugin.
const PluginName = "StorageObjectInUseProtection"

// Plugin adds the finalizers.
type Plugin struct{ *admission.Handler }

var _ admission.MutationInterface = &Plugin{}

// Register makes the plugin known to the chain.
func Register(plugins *admission.Plugins) {
	plugins.Register(PluginName, func(io.Reader) (admission.Interface, error) {
		return &Plugin{Handler: admission.NewHandler(admission.Create)}, nil
	})
}

// Admit protects a new claim or volume.
func (p *Plugin) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetSubresource() == "" {
		protect(a.GetObject())
	}
	return nil
}
