// Package asked calls the library's plugins for webhooks and policies only for resources, in namespaces, that a webhook
// or policy may match. Most writes are to others, and without webhooks and policies all are: looking through the
// webhooks and policies for each write costs more than the rest of its admission.
//
//	plugins.go          the four plugins
//	subjects.go         what is known of the objects of a kind
//	decide_subjects.go  which resources such an object may be about (pure)
package asked

import (
	"context"
	"errors"
	"io"

	"k8s.io/apiserver/pkg/admission"
	mutatingpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	validatingpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	mutatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
	validatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/validating"
	"k8s.io/client-go/informers"
)

// RegisterMutatingWebhook registers MutatingAdmissionWebhook.
func RegisterMutatingWebhook(plugins *admission.Plugins) {
	plugins.Register(mutatingwebhook.PluginName, func(config io.Reader) (admission.Interface, error) {
		p, err := mutatingwebhook.NewMutatingWebhook(config)
		return &mutatingWebhook{Plugin: p}, err
	})
}

type mutatingWebhook struct {
	*mutatingwebhook.Plugin
	subjects
}

// SetExternalKubeInformerFactory implements initializer.WantsExternalKubeInformerFactory.
func (p *mutatingWebhook) SetExternalKubeInformerFactory(f informers.SharedInformerFactory) {
	p.Plugin.SetExternalKubeInformerFactory(f)
	p.follow(f.Admissionregistration().V1().MutatingWebhookConfigurations().Informer(), ofMutatingWebhooks, f)
}

// ValidateInitialization implements admission.InitializationValidator.
func (p *mutatingWebhook) ValidateInitialization() error {
	return errors.Join(p.failed, p.Plugin.ValidateInitialization())
}

// Admit implements admission.MutationInterface.
func (p *mutatingWebhook) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if p.exclude(a) {
		return nil
	}
	return p.Plugin.Admit(ctx, a, o)
}

// RegisterValidatingWebhook registers ValidatingAdmissionWebhook.
func RegisterValidatingWebhook(plugins *admission.Plugins) {
	plugins.Register(validatingwebhook.PluginName, func(config io.Reader) (admission.Interface, error) {
		p, err := validatingwebhook.NewValidatingAdmissionWebhook(config)
		return &validatingWebhook{Plugin: p}, err
	})
}

type validatingWebhook struct {
	*validatingwebhook.Plugin
	subjects
}

// SetExternalKubeInformerFactory implements initializer.WantsExternalKubeInformerFactory.
func (p *validatingWebhook) SetExternalKubeInformerFactory(f informers.SharedInformerFactory) {
	p.Plugin.SetExternalKubeInformerFactory(f)
	p.follow(f.Admissionregistration().V1().ValidatingWebhookConfigurations().Informer(), ofValidatingWebhooks, f)
}

// ValidateInitialization implements admission.InitializationValidator.
func (p *validatingWebhook) ValidateInitialization() error {
	return errors.Join(p.failed, p.Plugin.ValidateInitialization())
}

// Validate implements admission.ValidationInterface.
func (p *validatingWebhook) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if p.exclude(a) {
		return nil
	}
	return p.Plugin.Validate(ctx, a, o)
}

// RegisterMutatingPolicy registers MutatingAdmissionPolicy.
func RegisterMutatingPolicy(plugins *admission.Plugins) {
	plugins.Register(mutatingpolicy.PluginName, func(config io.Reader) (admission.Interface, error) {
		p, err := mutatingpolicy.NewPlugin(config)
		return &mutatingPolicy{Plugin: p}, err
	})
}

type mutatingPolicy struct {
	*mutatingpolicy.Plugin
	subjects
}

// SetExternalKubeInformerFactory implements initializer.WantsExternalKubeInformerFactory.
func (p *mutatingPolicy) SetExternalKubeInformerFactory(f informers.SharedInformerFactory) {
	p.Plugin.SetExternalKubeInformerFactory(f)
	p.follow(f.Admissionregistration().V1().MutatingAdmissionPolicies().Informer(), ofMutatingPolicy, f)
}

// ValidateInitialization implements admission.InitializationValidator.
func (p *mutatingPolicy) ValidateInitialization() error {
	return errors.Join(p.failed, p.Plugin.ValidateInitialization())
}

// Admit implements admission.MutationInterface.
func (p *mutatingPolicy) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if p.exclude(a) {
		return nil
	}
	return p.Plugin.Admit(ctx, a, o)
}

// RegisterValidatingPolicy registers ValidatingAdmissionPolicy.
func RegisterValidatingPolicy(plugins *admission.Plugins) {
	plugins.Register(validatingpolicy.PluginName, func(config io.Reader) (admission.Interface, error) {
		p, err := validatingpolicy.NewPlugin(config)
		return &validatingPolicy{Plugin: p}, err
	})
}

type validatingPolicy struct {
	*validatingpolicy.Plugin
	subjects
}

// SetExternalKubeInformerFactory implements initializer.WantsExternalKubeInformerFactory.
func (p *validatingPolicy) SetExternalKubeInformerFactory(f informers.SharedInformerFactory) {
	p.Plugin.SetExternalKubeInformerFactory(f)
	p.follow(f.Admissionregistration().V1().ValidatingAdmissionPolicies().Informer(), ofValidatingPolicy, f)
}

// ValidateInitialization implements admission.InitializationValidator.
func (p *validatingPolicy) ValidateInitialization() error {
	return errors.Join(p.failed, p.Plugin.ValidateInitialization())
}

// Validate implements admission.ValidationInterface.
func (p *validatingPolicy) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if p.exclude(a) {
		return nil
	}
	return p.Plugin.Validate(ctx, a, o)
}
