// Package tolerationseconds is the admission plugin DefaultTolerationSeconds: it bounds how long Pods wait for a Node
// in trouble.
package tolerationseconds

import (
	"context"

	"k8s.io/apiserver/pkg/admission"

	"keelson.dev/services/apiserver/internal/admission/podrequest"
)

// Plugin adds the tolerations.
type Plugin struct{ *admission.Handler }

var _ admission.MutationInterface = &Plugin{}

// New returns the plugin.
func New() *Plugin { return &Plugin{admission.NewHandler(admission.Create, admission.Update)} }

// Admit completes the tolerations of a Pod.
func (p *Plugin) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	pod, err := podrequest.Pod(a)
	if pod == nil || err != nil {
		return err
	}
	pod.Spec.Tolerations = append(pod.Spec.Tolerations, decide(pod.Spec.Tolerations)...)
	return nil
}
