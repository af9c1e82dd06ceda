// Package alwayspullimages is the admission plugin AlwaysPullImages: nodes pull every image again, so that a user
// without the right to pull an image cannot run it just because the node has it. It is off unless an operator turns it
// on.
package alwayspullimages

import (
	"context"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/admission"
)

// PluginName is the name by which Kubernetes knows the plugin.
const PluginName = "AlwaysPullImages"

// Plugin sets and checks the pull policies of Pods.
type Plugin struct{ *admission.Handler }

var (
	_ admission.MutationInterface   = &Plugin{}
	_ admission.ValidationInterface = &Plugin{}
)

// Register makes the plugin known to the chain.
func Register(plugins *admission.Plugins) {
	plugins.Register(PluginName, func(io.Reader) (admission.Interface, error) {
		return &Plugin{admission.NewHandler(admission.Create, admission.Update)}, nil
	})
}

// Admit has what a Pod brings pulled.
func (p *Plugin) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if pod, old, is := pods(a); is {
		set(pod, old)
	}
	return nil
}

// Validate refuses what is not always pulled.
func (p *Plugin) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if pod, old, is := pods(a); is {
		if err := check(pod, old); err != nil {
			return admission.NewForbidden(a, err)
		}
	}
	return nil
}

// pods are the Pod that a request writes and what it was before, of requests that can bring images.
func pods(a admission.Attributes) (pod, old *corev1.Pod, is bool) {
	brings := a.GetSubresource() == "" || a.GetSubresource() == "ephemeralcontainers"
	if a.GetResource().GroupResource() != corev1.Resource("pods") || !brings {
		return nil, nil, false
	}
	pod, is = a.GetObject().(*corev1.Pod)
	old, _ = a.GetOldObject().(*corev1.Pod)
	return pod, old, is
}
