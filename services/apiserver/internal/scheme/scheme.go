// Package scheme is the one place that registers the types of all API groups.
package scheme

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

// version is one group version whose Go types are both its wire format and the
// form in which the server handles and stores its objects.
type version struct {
	schema.GroupVersion
	addToScheme func(*runtime.Scheme) error
}

var versions = []version{
	{corev1.SchemeGroupVersion, corev1.AddToScheme},
	{appsv1.SchemeGroupVersion, appsv1.AddToScheme},
	{authenticationv1.SchemeGroupVersion, authenticationv1.AddToScheme},
	{authorizationv1.SchemeGroupVersion, authorizationv1.AddToScheme},
	{autoscalingv1.SchemeGroupVersion, autoscalingv1.AddToScheme},
	{coordinationv1.SchemeGroupVersion, coordinationv1.AddToScheme},
	{policyv1.SchemeGroupVersion, policyv1.AddToScheme},
	{rbacv1.SchemeGroupVersion, rbacv1.AddToScheme},
	{schedulingv1.SchemeGroupVersion, schedulingv1.AddToScheme},
}

// New returns a scheme with every served type. It is made anew for each
// server, because resources add their defaults and field selectors to it.
func New() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, v := range versions {
		if err := addVersion(scheme, v); err != nil {
			return nil, fmt.Errorf("registering %s: %w", v.GroupVersion, err)
		}
	}
	if err := addEvents(scheme); err != nil {
		return nil, fmt.Errorf("registering events.k8s.io: %w", err)
	}
	if err := addOptionConversions(scheme); err != nil {
		return nil, fmt.Errorf("registering request options: %w", err)
	}
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	scheme.AddUnversionedTypes(schema.GroupVersion{Version: "v1"},
		&metav1.Status{}, &metav1.APIVersions{}, &metav1.APIGroupList{}, &metav1.APIGroup{}, &metav1.APIResourceList{})
	return scheme, nil
}

// Codecs returns the codecs of a scheme that New made.
func Codecs(scheme *runtime.Scheme) serializer.CodecFactory {
	return serializer.NewCodecFactory(scheme,
		serializer.WithStreamingCollectionEncodingToJSON(), serializer.WithStreamingCollectionEncodingToProtobuf())
}

// addVersion registers a group's only version, and its Go types once more as
// the group's internal version: so no object is ever converted.
func addVersion(scheme *runtime.Scheme, v version) error {
	if err := v.addToScheme(scheme); err != nil {
		return err
	}
	internal := schema.GroupVersion{Group: v.Group, Version: runtime.APIVersionInternal}
	for kind, t := range scheme.KnownTypes(v.GroupVersion) {
		// meta/v1 has internal forms of its own for ListOptions, WatchEvent and the like.
		if strings.HasPrefix(t.PkgPath(), "k8s.io/apimachinery/") {
			continue
		}
		obj, err := scheme.New(v.GroupVersion.WithKind(kind))
		if err != nil {
			return err
		}
		scheme.AddKnownTypeWithName(internal.WithKind(kind), obj)
	}
	return scheme.SetVersionPriority(v.GroupVersion)
}
