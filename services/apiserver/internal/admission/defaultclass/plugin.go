// Package defaultclass holds the admission plugins that give a new object that says nothing about its class the default
// one: DefaultStorageClass a claim, DefaultIngressClass an Ingress. Claims that came before any default get it from the
// controller of volumes.
package defaultclass

import (
	"context"
	"errors"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"keelson.dev/kit/defaultclass"
)

// The names by which Kubernetes knows the plugins.
const (
	Storage = "DefaultStorageClass"
	Ingress = "DefaultIngressClass"
)

// rule is what tells the plugins apart.
type rule struct {
	// field is where a new object names its class; nil for objects that are left alone.
	field       func(runtime.Object) **string
	annotations defaultclass.Annotations
	// classes is the informer of the kind of class.
	classes func(informers.SharedInformerFactory) cache.SharedIndexInformer
}

// Plugin completes objects by the classes in memory.
type Plugin struct {
	*admission.Handler
	rule
	known cache.Store
}

var (
	_ admission.MutationInterface                  = &Plugin{}
	_ initializer.WantsExternalKubeInformerFactory = &Plugin{}
)

// RegisterStorage makes DefaultStorageClass known to the chain.
func RegisterStorage(plugins *admission.Plugins) {
	register(plugins, Storage, rule{field: ofClaim, annotations: defaultclass.Storage,
		classes: func(factory informers.SharedInformerFactory) cache.SharedIndexInformer {
			return factory.Storage().V1().StorageClasses().Informer()
		}})
}

// RegisterIngress makes DefaultIngressClass known to the chain.
func RegisterIngress(plugins *admission.Plugins) {
	register(plugins, Ingress, rule{field: ofIngress,
		annotations: defaultclass.Ingress,
		classes: func(factory informers.SharedInformerFactory) cache.SharedIndexInformer {
			return factory.Networking().V1().IngressClasses().Informer()
		}})
}

func register(plugins *admission.Plugins, name string, by rule) {
	plugins.Register(name, func(io.Reader) (admission.Interface, error) {
		return &Plugin{Handler: admission.NewHandler(admission.Create), rule: by}, nil
	})
}

// SetExternalKubeInformerFactory implements WantsExternalKubeInformerFactory. The plugin admits no object that names no
// class before the informer has read the classes.
func (p *Plugin) SetExternalKubeInformerFactory(factory informers.SharedInformerFactory) {
	informer := p.classes(factory)
	p.known = informer.GetStore()
	p.SetReadyFunc(informer.HasSynced)
}

// ValidateInitialization implements InitializationValidator.
func (p *Plugin) ValidateInitialization() error {
	if p.known == nil {
		return errors.New("it has no informers")
	}
	return nil
}

// Admit sets the class of a new object that names none.
func (p *Plugin) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetSubresource() != "" {
		return nil
	}
	field := p.field(a.GetObject())
	if field == nil {
		return nil
	}
	if !p.WaitForReady() {
		return admission.NewForbidden(a, fmt.Errorf("not yet ready to handle request"))
	}
	if class, found := defaultclass.Among(p.list(), p.annotations); found {
		name := class.GetName()
		*field = &name
	}
	return nil
}

func (p *Plugin) list() []metav1.Object {
	stored := p.known.List()
	classes := make([]metav1.Object, len(stored))
	for i := range stored {
		classes[i] = stored[i].(metav1.Object)
	}
	return classes
}
