// Package defaultingressclass is the admission plugin DefaultIngressClass: it gives a new Ingress that says nothing
// about its class the default one.
package defaultingressclass

import (
	"context"
	"errors"
	"fmt"
	"io"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/client-go/informers"
	networkinglisters "k8s.io/client-go/listers/networking/v1"
)

// PluginName is the name by which Kubernetes knows the plugin.
const PluginName = "DefaultIngressClass"

// Plugin completes Ingresses by the classes in memory.
type Plugin struct {
	*admission.Handler
	classes networkinglisters.IngressClassLister
}

var (
	_ admission.MutationInterface                  = &Plugin{}
	_ initializer.WantsExternalKubeInformerFactory = &Plugin{}
)

// Register makes the plugin known to the chain.
func Register(plugins *admission.Plugins) {
	plugins.Register(PluginName, func(io.Reader) (admission.Interface, error) {
		return &Plugin{Handler: admission.NewHandler(admission.Create)}, nil
	})
}

// SetExternalKubeInformerFactory implements WantsExternalKubeInformerFactory. The plugin admits no Ingress before the
// informer has read the classes.
func (p *Plugin) SetExternalKubeInformerFactory(factory informers.SharedInformerFactory) {
	classes := factory.Networking().V1().IngressClasses()
	p.classes = classes.Lister()
	p.SetReadyFunc(classes.Informer().HasSynced)
}

// ValidateInitialization implements InitializationValidator.
func (p *Plugin) ValidateInitialization() error {
	if p.classes == nil {
		return errors.New("it has no informers")
	}
	return nil
}

// Admit sets the class of an Ingress.
func (p *Plugin) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	ingress, ok := a.GetObject().(*networkingv1.Ingress)
	if !ok || a.GetSubresource() != "" || !needsClass(ingress) {
		return nil
	}
	if !p.WaitForReady() {
		return admission.NewForbidden(a, fmt.Errorf("not yet ready to handle request"))
	}
	classes, err := p.classes.List(labels.Everything())
	if err != nil {
		return admission.NewForbidden(a, fmt.Errorf("listing the ingress classes: %w", err))
	}
	if class := pick(classes); class != nil {
		ingress.Spec.IngressClassName = &class.Name
	}
	return nil
}
