// Package defaultstorageclass is the admission plugin DefaultStorageClass: it gives a new claim that says nothing about
// its class the default one. Claims that came before any default get it from the controller of volumes.
package defaultstorageclass

import (
	"context"
	"errors"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/client-go/informers"
	storagelisters "k8s.io/client-go/listers/storage/v1"
)

// PluginName is the name by which Kubernetes knows the plugin.
const PluginName = "DefaultStorageClass"

// Plugin completes claims by the classes in memory.
type Plugin struct {
	*admission.Handler
	classes storagelisters.StorageClassLister
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

// SetExternalKubeInformerFactory implements WantsExternalKubeInformerFactory. The plugin admits no claim before the
// informer has read the classes.
func (p *Plugin) SetExternalKubeInformerFactory(factory informers.SharedInformerFactory) {
	classes := factory.Storage().V1().StorageClasses()
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

// Admit sets the class of a claim.
func (p *Plugin) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	claim, ok := a.GetObject().(*corev1.PersistentVolumeClaim)
	if !ok || a.GetSubresource() != "" || !needsClass(claim) {
		return nil
	}
	if !p.WaitForReady() {
		return admission.NewForbidden(a, fmt.Errorf("not yet ready to handle request"))
	}
	classes, err := p.classes.List(labels.Everything())
	if err != nil {
		return admission.NewForbidden(a, fmt.Errorf("listing the storage classes: %w", err))
	}
	if class := pick(classes); class != nil {
		claim.Spec.StorageClassName = &class.Name
	}
	return nil
}
