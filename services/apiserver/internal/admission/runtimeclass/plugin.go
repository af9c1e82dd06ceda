// Package runtimeclass is the admission plugin RuntimeClass: it gives a Pod the overhead of the runtime class that the
// Pod names, and keeps it on nodes that have the runtime.
package runtimeclass

import (
	"context"
	"errors"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/informers"
	nodelisters "k8s.io/client-go/listers/node/v1"

	"keelson.dev/kit/runtimeclass"
	"keelson.dev/services/apiserver/internal/admission/lookup"
	"keelson.dev/services/apiserver/internal/admission/podrequest"
)

// PluginName is the name by which Kubernetes knows the plugin.
const PluginName = "RuntimeClass"

// Plugin looks classes up in memory, and those that are not there yet in the store.
type Plugin struct {
	*lookup.Handler[nodelisters.RuntimeClassLister]
}

var (
	_ admission.MutationInterface   = &Plugin{}
	_ admission.ValidationInterface = &Plugin{}
)

// Register makes the plugin known to the chain.
func Register(plugins *admission.Plugins) {
	plugins.Register(PluginName, func(io.Reader) (admission.Interface, error) {
		return &Plugin{lookup.NewHandler(classes, admission.Create)}, nil
	})
}

func classes(factory informers.SharedInformerFactory) lookup.Informer[nodelisters.RuntimeClassLister] {
	return factory.Node().V1().RuntimeClasses()
}

// Admit gives a new Pod what its class says.
func (p *Plugin) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	return p.with(ctx, a, runtimeclass.Apply)
}

// Validate refuses a new Pod whose overhead is not its class's.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	return p.with(ctx, a, runtimeclass.Check)
}

func (p *Plugin) with(ctx context.Context, a admission.Attributes,
	do func(*corev1.Pod, *nodev1.RuntimeClass) error) error {
	pod, err := podrequest.Pod(a)
	if pod == nil || err != nil {
		return err
	}
	class, err := p.class(ctx, pod.Spec.RuntimeClassName)
	if err == nil {
		err = do(pod, class)
	}
	if err != nil {
		return admission.NewForbidden(a, err)
	}
	return nil
}

// class returns nil for a Pod that names none.
func (p *Plugin) class(ctx context.Context, name *string) (*nodev1.RuntimeClass, error) {
	if name == nil || *name == "" {
		return nil, nil
	}
	if !p.WaitForReady() {
		return nil, errors.New("not yet ready to handle request")
	}
	class, err := lookup.Get(ctx, *name, p.Objects, p.Client.NodeV1().RuntimeClasses())
	if apierrors.IsNotFound(err) {
		return nil, runtimeclass.Missing(*name)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the RuntimeClass %s: %w", *name, err)
	}
	return class, nil
}
