// Package podgroupprotection is the admission plugin PodGroupProtection: a PodGroup outlives its deletion until its
// Pods have ended.
package podgroupprotection

import (
	"context"
	"io"

	"k8s.io/apiserver/pkg/admission"
)

// PluginName is the name by which Kubernetes knows the plugin.
const PluginName = "PodGroupProtection"

// Plugin adds the finalizer.
type Plugin struct{ *admission.Handler }

var _ admission.MutationInterface = &Plugin{}

// Register makes the plugin known to the chain.
func Register(plugins *admission.Plugins) {
	plugins.Register(PluginName, func(io.Reader) (admission.Interface, error) {
		return &Plugin{Handler: admission.NewHandler(admission.Create)}, nil
	})
}

// Admit protects a new PodGroup.
func (p *Plugin) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetSubresource() == "" {
		protect(a.GetObject())
	}
	return nil
}
