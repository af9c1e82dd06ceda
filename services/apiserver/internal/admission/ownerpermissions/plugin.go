// Package ownerpermissions is the admission plugin OwnerReferencesPermissionEnforcement: who gives an object an owner
// may delete the object, and who makes an owner's deletion wait may write the owner's finalizers. It is off unless an
// operator asks for it.
package ownerpermissions

import (
	"context"
	"errors"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// PluginName is the name by which Kubernetes knows the plugin.
const PluginName = "OwnerReferencesPermissionEnforcement"

// Plugin checks who may give owners.
type Plugin struct {
	*admission.Handler
	authorizer authorizer.Authorizer
	mapper     meta.RESTMapper
}

var (
	_ admission.ValidationInterface = &Plugin{}
	_ initializer.WantsAuthorizer   = &Plugin{}
	_ initializer.WantsRESTMapper   = &Plugin{}
)

// Register makes the plugin known to the chain.
func Register(plugins *admission.Plugins) {
	plugins.Register(PluginName, func(io.Reader) (admission.Interface, error) {
		return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update)}, nil
	})
}

// SetAuthorizer implements WantsAuthorizer.
func (p *Plugin) SetAuthorizer(a authorizer.Authorizer) { p.authorizer = a }

// SetRESTMapper implements WantsRESTMapper.
func (p *Plugin) SetRESTMapper(m meta.RESTMapper) { p.mapper = m }

// ValidateInitialization implements InitializationValidator.
func (p *Plugin) ValidateInitialization() error {
	switch {
	case p.authorizer == nil:
		return errors.New("it has no authorizer")
	case p.mapper == nil:
		return errors.New("it has no REST mapper")
	}
	return nil
}

// Validate refuses owners that the user may not give.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	// A node reports on Pods that it may not delete, and their owners do not change by it.
	if a.GetResource().GroupResource() == corev1.Resource("pods") && a.GetSubresource() == "status" {
		return nil
	}
	updated, old := owners(a.GetObject()), owners(a.GetOldObject())
	if !changes(updated, old) {
		return nil
	}
	resource := a.GetResource()
	if err := p.may(ctx, a, "delete", resource.GroupVersion(), resource.Resource, a.GetSubresource(), a.GetNamespace(),
		a.GetName()); err != nil {
		return admission.NewForbidden(a, fmt.Errorf("cannot set an ownerRef on a resource you can't delete: %w", err))
	}
	for _, ref := range blocking(updated, old) {
		if err := p.mayBlock(ctx, a, ref); err != nil {
			return admission.NewForbidden(a, err)
		}
	}
	return nil
}

// owners are those of an object; what has no metadata has none.
func owners(obj any) []metav1.OwnerReference {
	if object, err := meta.Accessor(obj); err == nil {
		return object.GetOwnerReferences()
	}
	return nil
}

// mayBlock asks for each resource that the owner's kind may be.
func (p *Plugin) mayBlock(ctx context.Context, a admission.Attributes, ref metav1.OwnerReference) error {
	version, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return fmt.Errorf("cannot set blockOwnerDeletion: %w", err)
	}
	mappings, err := p.mapper.RESTMappings(version.WithKind(ref.Kind).GroupKind(), version.Version)
	if err != nil {
		return fmt.Errorf("cannot set blockOwnerDeletion where the resource of %s %s is not known: %w", ref.APIVersion,
			ref.Kind, err)
	}
	for _, mapping := range mappings {
		namespace := ""
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			namespace = a.GetNamespace()
		}
		if err := p.may(ctx, a, "update", mapping.Resource.GroupVersion(), mapping.Resource.Resource, "finalizers",
			namespace, ref.Name); err != nil {
			return fmt.Errorf("cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set "+
				"finalizers on: %w", err)
		}
	}
	return nil
}

func (p *Plugin) may(ctx context.Context, a admission.Attributes, verb string, version schema.GroupVersion, resource,
	subresource, namespace, name string) error {
	decision, reason, err := p.authorizer.Authorize(ctx, authorizer.AttributesRecord{User: a.GetUserInfo(), Verb: verb,
		APIGroup: version.Group, APIVersion: version.Version, Resource: resource, Subresource: subresource,
		Namespace: namespace, Name: name, ResourceRequest: true})
	if decision == authorizer.DecisionAllow {
		return nil
	}
	return errors.Join(errors.New(reason), err)
}
