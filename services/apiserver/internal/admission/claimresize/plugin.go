// Package claimresize is the admission plugin PersistentVolumeClaimResize: a claim grows only where its class can give
// its volume more room. That of the default class, a folder, has no size that could grow.
package claimresize

import (
	"context"
	"errors"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/client-go/kubernetes"
)

// PluginName is the name by which Kubernetes knows the plugin.
const PluginName = "PersistentVolumeClaimResize"

// Plugin reads the class of a claim that grows, which is rare, from the store.
type Plugin struct {
	*admission.Handler
	client kubernetes.Interface
}

var (
	_ admission.ValidationInterface          = &Plugin{}
	_ initializer.WantsExternalKubeClientSet = &Plugin{}
)

// Register makes the plugin known to the chain.
func Register(plugins *admission.Plugins) {
	plugins.Register(PluginName, func(io.Reader) (admission.Interface, error) {
		return &Plugin{Handler: admission.NewHandler(admission.Update)}, nil
	})
}

// SetExternalKubeClientSet implements WantsExternalKubeClientSet.
func (p *Plugin) SetExternalKubeClientSet(client kubernetes.Interface) { p.client = client }

// ValidateInitialization implements InitializationValidator.
func (p *Plugin) ValidateInitialization() error {
	if p.client == nil {
		return errors.New("it has no client")
	}
	return nil
}

// Validate refuses a claim that grows where its volume cannot.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	claim, isClaim := a.GetObject().(*corev1.PersistentVolumeClaim)
	old, wasClaim := a.GetOldObject().(*corev1.PersistentVolumeClaim)
	if !isClaim || !wasClaim || a.GetSubresource() != "" || !grows(claim, old) {
		return nil
	}
	class, err := p.class(ctx, className(claim))
	if err == nil {
		err = check(class)
	}
	if err != nil {
		return admission.NewForbidden(a, err)
	}
	return nil
}

// class returns nil where there is none of the name.
func (p *Plugin) class(ctx context.Context, name string) (*storagev1.StorageClass, error) {
	if name == "" {
		return nil, nil
	}
	class, err := p.client.StorageV1().StorageClasses().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the storage class %s: %w", name, err)
	}
	return class, nil
}
