// Package tolerationseconds is the admission plugin DefaultTolerationSeconds: it bounds how long Pods wait for a Node
// in trouble.
package tolerationseconds

import (
	"context"
	"io"

	"k8s.io/apiserver/pkg/admission"

	"keelson.dev/services/apiserver/internal/admission/podrequest"
)

// PluginName is the name by which Kubernetes knows the plugin.
const PluginName = "DefaultTolerationSeconds"

// Plugin adds the tolerations.
type Plugin struct{ *admission.Handler }

var _ admission.MutationInterface = &Plugin{}

// Register makes the plugin known to the chain.
func Register(plugins *admission.Plugins) {
	plugins.Register(PluginName, func(io.Reader) (admission.Interface, error) {
		return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update)}, nil
	})
}

// Admit completes the tolerations of a Pod.
func (p *Plugin) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	pod, err := podrequest.Pod(a)
	if pod == nil || err != nil {
		return err
	}
	pod.Spec.Tolerations = append(pod.Spec.Tolerations, decide(pod.Spec.Tolerations)...)
	return nil
}
