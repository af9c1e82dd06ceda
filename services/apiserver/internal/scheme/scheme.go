// Package scheme is the one place that registers the types of all API groups.
package scheme

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	policyv1beta1 "k8s.io/api/policy/v1beta1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	metricsv1 "k8s.io/metrics/pkg/apis/metrics/v1"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
)

// group is an API group. Each of its kinds has one Go type in which the server handles and stores its objects, the hub:
// that of the first version which has the kind, unless hubs says otherwise.
type group struct {
	// versions are in the order in which clients prefer them.
	versions []version
	// hubs are, by kind, the types of kinds that are not handled and stored in the first version which has them.
	hubs map[string]runtime.Object
	// conversions registers the conversions between the hubs and the types of other versions.
	conversions func(*runtime.Scheme) error
}

// version is one version of a group.
type version struct {
	schema.GroupVersion
	addToScheme func(*runtime.Scheme) error
}

var groups = []group{
	{versions: []version{{corev1.SchemeGroupVersion, corev1.AddToScheme}}},
	{versions: []version{{admissionregistrationv1.SchemeGroupVersion, admissionregistrationv1.AddToScheme}}},
	{versions: []version{{apiregistrationv1.SchemeGroupVersion, addAPIServices}}},
	{versions: []version{{appsv1.SchemeGroupVersion, appsv1.AddToScheme}}},
	{versions: []version{{authenticationv1.SchemeGroupVersion, authenticationv1.AddToScheme}}},
	{versions: []version{{authorizationv1.SchemeGroupVersion, authorizationv1.AddToScheme}}},
	{
		versions: []version{
			{autoscalingv2.SchemeGroupVersion, autoscalingv2.AddToScheme},
			{autoscalingv1.SchemeGroupVersion, autoscalingv1.AddToScheme},
		},
		conversions: addAutoscalerConversions,
	},
	{versions: []version{{batchv1.SchemeGroupVersion, batchv1.AddToScheme}}},
	{versions: []version{{certificatesv1.SchemeGroupVersion, certificatesv1.AddToScheme}}},
	{versions: []version{{coordinationv1.SchemeGroupVersion, coordinationv1.AddToScheme}}},
	{versions: []version{{discoveryv1.SchemeGroupVersion, discoveryv1.AddToScheme}}},
	{
		versions:    []version{{eventsv1.SchemeGroupVersion, eventsv1.AddToScheme}},
		hubs:        map[string]runtime.Object{"Event": &corev1.Event{}, "EventList": &corev1.EventList{}},
		conversions: addEventConversions,
	},
	{versions: []version{{flowcontrolv1.SchemeGroupVersion, flowcontrolv1.AddToScheme}}},
	{
		versions: []version{
			{metricsv1.SchemeGroupVersion, metricsv1.AddToScheme},
			{metricsv1beta1.SchemeGroupVersion, metricsv1beta1.AddToScheme},
		},
		conversions: addMetricsConversions,
	},
	{versions: []version{{networkingv1.SchemeGroupVersion, networkingv1.AddToScheme}}},
	{versions: []version{{nodev1.SchemeGroupVersion, nodev1.AddToScheme}}},
	{
		versions: []version{
			{policyv1.SchemeGroupVersion, policyv1.AddToScheme},
			{policyv1beta1.SchemeGroupVersion, addBetaEviction},
		},
		conversions: addEvictionConversions,
	},
	{versions: []version{{rbacv1.SchemeGroupVersion, rbacv1.AddToScheme}}},
	{versions: []version{{resourcev1.SchemeGroupVersion, resourcev1.AddToScheme}}},
	{versions: []version{
		{schedulingv1.SchemeGroupVersion, schedulingv1.AddToScheme},
		{schedulingv1beta1.SchemeGroupVersion, addWorkloads},
	}},
	{versions: []version{{storagev1.SchemeGroupVersion, storagev1.AddToScheme}}},
}

// New returns a scheme with every served type. Each server makes its own, because resources add their defaults and
// field selectors to it.
func New() (*runtime.Scheme, error) { return newScheme(groups) }

func newScheme(groups []group) (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, g := range groups {
		if err := addGroup(scheme, g); err != nil {
			return nil, fmt.Errorf("registering %s: %w", g.versions[0].Group, err)
		}
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

// StorageVersion is the version in which objects like example are stored under the group: the one whose type is the
// hub.
func StorageVersion(scheme *runtime.Scheme, group string, example runtime.Object) (schema.GroupVersion, error) {
	kinds, _, err := scheme.ObjectKinds(example)
	if err != nil {
		return schema.GroupVersion{}, err
	}
	for _, version := range scheme.PrioritizedVersionsForGroup(group) {
		if slices.ContainsFunc(kinds, func(k schema.GroupVersionKind) bool { return k.GroupVersion() == version }) {
			return version, nil
		}
	}
	return schema.GroupVersion{}, fmt.Errorf("no version of the group %q has the type %T", group, example)
}

// addGroup registers the types of all versions, and the hubs once more as the group's internal version: so an object of
// the stored version is never converted.
func addGroup(scheme *runtime.Scheme, g group) error {
	internal := schema.GroupVersion{Group: g.versions[0].Group, Version: runtime.APIVersionInternal}
	for kind, hub := range g.hubs {
		scheme.AddKnownTypeWithName(internal.WithKind(kind), hub)
	}
	priority := make([]schema.GroupVersion, 0, len(g.versions))
	for _, v := range g.versions {
		if err := v.addToScheme(scheme); err != nil {
			return err
		}
		if err := addHubs(scheme, v.GroupVersion, internal); err != nil {
			return err
		}
		priority = append(priority, v.GroupVersion)
	}
	if g.conversions != nil {
		if err := g.conversions(scheme); err != nil {
			return err
		}
	}
	return scheme.SetVersionPriority(priority...)
}

// addHubs makes the version's types the hubs of the kinds that have none yet.
func addHubs(scheme *runtime.Scheme, version, internal schema.GroupVersion) error {
	for kind, t := range scheme.KnownTypes(version) {
		// meta/v1 has internal forms of its own for ListOptions, WatchEvent and the like.
		if strings.HasPrefix(t.PkgPath(), "k8s.io/apimachinery/") || scheme.Recognizes(internal.WithKind(kind)) {
			continue
		}
		obj, err := scheme.New(version.WithKind(kind))
		if err != nil {
			return err
		}
		scheme.AddKnownTypeWithName(internal.WithKind(kind), obj)
	}
	return nil
}

// convertible registers the conversions between a hub and another version of its kind. Like generated conversions they
// may share what their input points to.
func convertible[Hub, Version any](scheme *runtime.Scheme, fromHub func(*Hub, *Version),
	toHub func(*Version, *Hub)) error {
	err := scheme.AddConversionFunc((*Hub)(nil), (*Version)(nil), func(in, out any, _ conversion.Scope) error {
		fromHub(in.(*Hub), out.(*Version))
		return nil
	})
	if err != nil {
		return err
	}
	return scheme.AddConversionFunc((*Version)(nil), (*Hub)(nil), func(in, out any, _ conversion.Scope) error {
		toHub(in.(*Version), out.(*Hub))
		return nil
	})
}
