// Package taintnodesbycondition is the admission plugin TaintNodesByCondition: no Pod is bound to a new Node before the
// taints follow what the Node says of itself.
package taintnodesbycondition

import (
	"context"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/admission"
)

// PluginName is the name by which Kubernetes knows the plugin.
const PluginName = "TaintNodesByCondition"

// Plugin adds the taint.
type Plugin struct{ *admission.Handler }

var _ admission.MutationInterface = &Plugin{}

// Register makes the plugin known to the chain.
func Register(plugins *admission.Plugins) {
	plugins.Register(PluginName, func(io.Reader) (admission.Interface, error) {
		return &Plugin{Handler: admission.NewHandler(admission.Create)}, nil
	})
}

// Admit taints a new Node. podgc's collector nodehealth takes the taint away.
func (p *Plugin) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if node, ok := a.GetObject().(*corev1.Node); ok && a.GetSubresource() == "" {
		node.Spec.Taints = decide(node.Spec.Taints)
	}
	return nil
}
