package server

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericrest "k8s.io/apiserver/pkg/registry/rest"
	cliflag "k8s.io/component-base/cli/flag"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"keelson.dev/kit/daemon"
	"keelson.dev/services/apiserver/internal/registry"
)

// ownVersions are those that the server asks itself for: without them it would never be ready.
var ownVersions = []schema.GroupVersion{
	corev1.SchemeGroupVersion, admissionregistrationv1.SchemeGroupVersion, apiextensionsv1.SchemeGroupVersion,
	apiregistrationv1.SchemeGroupVersion, coordinationv1.SchemeGroupVersion,
	discoveryv1.SchemeGroupVersion, flowcontrolv1.SchemeGroupVersion, networkingv1.SchemeGroupVersion,
	nodev1.SchemeGroupVersion,
	rbacv1.SchemeGroupVersion, schedulingv1.SchemeGroupVersion, storagev1.SchemeGroupVersion,
}

// addRuntimeConfigFlag binds the flag of what is served.
func (o *Options) addRuntimeConfigFlag(fs *pflag.FlagSet) {
	fs.Var((*cliflag.ConfigurationMap)(&o.RuntimeConfig), "runtime-config",
		"what is served of the API, comma-separated: GROUP/VERSION=true|false, v1=true|false for the core group, "+
			"GROUP/VERSION/RESOURCE=false, and api/all, api/ga, api/beta or api/alpha for many versions at once; "+
			"default: all")
}

// enabled is what --runtime-config leaves of the versions of the groups.
func (o *Options) enabled(s *runtime.Scheme, groups []registry.Group) (enabled, error) {
	all := []schema.GroupVersion{apiextensionsv1.SchemeGroupVersion}
	for _, group := range groups {
		all = append(all, group.Versions(s)...)
	}
	out, err := decideEnabled(o.RuntimeConfig, all, ownVersions)
	if err != nil {
		return enabled{}, daemon.UsageError(fmt.Errorf("--runtime-config: %w", err))
	}
	return out, nil
}

// apply leaves of the groups what is served.
func (e enabled) apply(groups []servedGroup) error {
	unknown := maps.Clone(e.without)
	for i := range groups {
		groups[i].versions = slices.DeleteFunc(groups[i].versions, func(version groupVersion) bool {
			maps.DeleteFunc(version.storages, func(path string, _ genericrest.Storage) bool {
				resource, _, _ := strings.Cut(path, "/")
				named := version.WithResource(resource)
				delete(unknown, named)
				return e.without[named]
			})
			return !e.versions[version.GroupVersion] || len(version.storages) == 0
		})
	}
	for named := range unknown {
		return daemon.UsageError(fmt.Errorf("--runtime-config: %s/%s: %s has no resource %s", named.GroupVersion(),
			named.Resource, named.GroupVersion(), named.Resource))
	}
	return nil
}
