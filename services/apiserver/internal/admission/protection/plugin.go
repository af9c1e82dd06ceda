// Package protection holds the admission plugins that let objects outlive their deletion while they are in use:
// StorageObjectInUseProtection a claim that a Pod uses, a volume that is bound to a claim and a VolumeAttributesClass
// that a claim or a volume names, PodGroupProtection a PodGroup whose Pods have not ended.
package protection

import (
	"context"
	"io"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
)

// The names by which Kubernetes knows the plugins.
const (
	StorageObjects = "StorageObjectInUseProtection"
	PodGroups      = "PodGroupProtection"
)

// Plugin adds the finalizers of its objects.
type Plugin struct {
	*admission.Handler
	// finalizer is the one of a new object; empty for those that are left alone.
	finalizer func(runtime.Object) string
}

var _ admission.MutationInterface = &Plugin{}

// RegisterStorageObjects makes StorageObjectInUseProtection known to the chain.
func RegisterStorageObjects(plugins *admission.Plugins) { register(plugins, StorageObjects, ofStorage) }

// RegisterPodGroups makes PodGroupProtection known to the chain.
func RegisterPodGroups(plugins *admission.Plugins) { register(plugins, PodGroups, ofPodGroup) }

func register(plugins *admission.Plugins, name string, finalizer func(runtime.Object) string) {
	plugins.Register(name, func(io.Reader) (admission.Interface, error) {
		return &Plugin{Handler: admission.NewHandler(admission.Create), finalizer: finalizer}, nil
	})
}

// Admit protects a new object.
func (p *Plugin) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetSubresource() == "" {
		protect(a.GetObject(), p.finalizer)
	}
	return nil
}
