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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	nodelisters "k8s.io/client-go/listers/node/v1"

	"keelson.dev/kit/runtimeclass"
	"keelson.dev/services/apiserver/internal/admission/podrequest"
)

// PluginName is the name by which Kubernetes knows the plugin.
const PluginName = "RuntimeClass"

// Plugin looks classes up in memory, and those that are not there yet in the store.
type Plugin struct {
	*admission.Handler
	classes nodelisters.RuntimeClassLister
	client  kubernetes.Interface
}

var (
	_ admission.MutationInterface                  = &Plugin{}
	_ admission.ValidationInterface                = &Plugin{}
	_ initializer.WantsExternalKubeClientSet       = &Plugin{}
	_ initializer.WantsExternalKubeInformerFactory = &Plugin{}
)

// Register makes the plugin known to the chain.
func Register(plugins *admission.Plugins) {
	plugins.Register(PluginName, func(io.Reader) (admission.Interface, error) {
		return &Plugin{Handler: admission.NewHandler(admission.Create)}, nil
	})
}

// SetExternalKubeClientSet implements WantsExternalKubeClientSet.
func (p *Plugin) SetExternalKubeClientSet(client kubernetes.Interface) { p.client = client }

// SetExternalKubeInformerFactory implements WantsExternalKubeInformerFactory. The plugin admits nothing before the
// informer has read the classes.
func (p *Plugin) SetExternalKubeInformerFactory(factory informers.SharedInformerFactory) {
	classes := factory.Node().V1().RuntimeClasses()
	p.classes = classes.Lister()
	p.SetReadyFunc(classes.Informer().HasSynced)
}

// ValidateInitialization implements InitializationValidator.
func (p *Plugin) ValidateInitialization() error {
	switch {
	case p.client == nil:
		return errors.New("it has no client")
	case p.classes == nil:
		return errors.New("it has no informers")
	}
	return nil
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
	class, err := p.classes.Get(*name)
	if apierrors.IsNotFound(err) {
		class, err = p.client.NodeV1().RuntimeClasses().Get(ctx, *name, metav1.GetOptions{})
	}
	if apierrors.IsNotFound(err) {
		return nil, runtimeclass.Missing(*name)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the RuntimeClass %s: %w", *name, err)
	}
	return class, nil
}
