// Package registry is the list of all resources that the apiserver serves.
package registry

import (
	"fmt"
	"maps"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericrest "k8s.io/apiserver/pkg/registry/rest"

	"keelson.dev/services/apiserver/internal/authn"
	"keelson.dev/services/apiserver/internal/authz"
	"keelson.dev/services/apiserver/internal/nodeproxy"
	"keelson.dev/services/apiserver/internal/registry/apps/deployment"
	"keelson.dev/services/apiserver/internal/registry/apps/replicaset"
	"keelson.dev/services/apiserver/internal/registry/authentication/tokenreview"
	"keelson.dev/services/apiserver/internal/registry/authorization/accessreview"
	"keelson.dev/services/apiserver/internal/registry/coordination/lease"
	"keelson.dev/services/apiserver/internal/registry/core/configmap"
	"keelson.dev/services/apiserver/internal/registry/core/endpoints"
	"keelson.dev/services/apiserver/internal/registry/core/event"
	"keelson.dev/services/apiserver/internal/registry/core/namespace"
	"keelson.dev/services/apiserver/internal/registry/core/node"
	"keelson.dev/services/apiserver/internal/registry/core/pod"
	"keelson.dev/services/apiserver/internal/registry/core/secret"
	"keelson.dev/services/apiserver/internal/registry/core/service"
	"keelson.dev/services/apiserver/internal/registry/core/serviceaccount"
	"keelson.dev/services/apiserver/internal/registry/rbac/clusterrole"
	"keelson.dev/services/apiserver/internal/registry/rbac/clusterrolebinding"
	"keelson.dev/services/apiserver/internal/registry/rbac/policy"
	"keelson.dev/services/apiserver/internal/registry/rbac/role"
	"keelson.dev/services/apiserver/internal/registry/rbac/rolebinding"
	"keelson.dev/services/apiserver/internal/registry/rest"
	"keelson.dev/services/apiserver/internal/registry/scheduling/priorityclass"
)

// Config is what single resources need beyond a store.
type Config struct {
	Authenticators authn.Authenticators
	Audiences      []string
	Authorizer     *authz.Authorizer
	// Tokens issues service-account tokens, Nodes leads to the nodeagents.
	Tokens serviceaccount.Tokens
	Nodes  *nodeproxy.Nodes
	// Services are given addresses and ports from here.
	Services service.Config
	// EventTTL is how long Events are kept.
	EventTTL time.Duration
}

// Resource is one resource's folder: what it adds to the scheme and how its storages are made.
type Resource struct {
	// AddToScheme is nil for a resource without a stored type.
	AddToScheme func(*runtime.Scheme) error
	NewStorage  func(rest.Options) (map[string]genericrest.Storage, error)
}

// Group is the resources of one group version.
type Group struct {
	schema.GroupVersion
	Resources []Resource
}

// Groups lists every group version and its resources. For the mere list of
// versions and types an empty Config will do.
func Groups(c Config) []Group {
	events := &event.Storages{TTL: c.EventTTL}
	// Whoever writes roles and bindings cannot grant more than they have.
	var guard policy.Authority = c.Authorizer
	return []Group{
		{corev1.SchemeGroupVersion, []Resource{
			{configmap.AddToScheme, configmap.NewStorage},
			{endpoints.AddToScheme, endpoints.NewStorage},
			{event.AddToScheme, events.NewCoreStorage},
			{namespace.AddToScheme, namespace.NewStorage},
			{node.AddToScheme, node.NewStorage},
			{pod.AddToScheme, with(pod.NewStorage, c.Nodes)},
			{secret.AddToScheme, secret.NewStorage},
			{service.AddToScheme, with(service.NewStorage, c.Services)},
			{serviceaccount.AddToScheme, with(serviceaccount.NewStorage, c.Tokens)},
		}},
		{appsv1.SchemeGroupVersion, []Resource{
			{deployment.AddToScheme, deployment.NewStorage},
			{replicaset.AddToScheme, replicaset.NewStorage},
		}},
		{authenticationv1.SchemeGroupVersion, []Resource{
			{nil, func(rest.Options) (map[string]genericrest.Storage, error) {
				return tokenreview.NewStorage(c.Authenticators, c.Audiences), nil
			}},
		}},
		{authorizationv1.SchemeGroupVersion, []Resource{
			{nil, func(rest.Options) (map[string]genericrest.Storage, error) {
				return accessreview.NewStorage(c.Authorizer), nil
			}},
		}},
		{coordinationv1.SchemeGroupVersion, []Resource{
			{lease.AddToScheme, lease.NewStorage},
		}},
		{eventsv1.SchemeGroupVersion, []Resource{
			{nil, events.NewEventsStorage},
		}},
		{rbacv1.SchemeGroupVersion, []Resource{
			{clusterrole.AddToScheme, with(clusterrole.NewStorage, guard)},
			{clusterrolebinding.AddToScheme, with(clusterrolebinding.NewStorage, guard)},
			{role.AddToScheme, with(role.NewStorage, guard)},
			{rolebinding.AddToScheme, with(rolebinding.NewStorage, guard)},
		}},
		{schedulingv1.SchemeGroupVersion, []Resource{
			{priorityclass.AddToScheme, priorityclass.NewStorage},
		}},
	}
}

// with gives a resource what it needs beyond its options.
func with[D any](newStorage func(rest.Options, D) (map[string]genericrest.Storage, error), need D) func(rest.Options) (map[string]genericrest.Storage, error) {
	return func(o rest.Options) (map[string]genericrest.Storage, error) { return newStorage(o, need) }
}

// AddToScheme registers what the resources of all groups add to the scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	for _, group := range Groups(Config{}) {
		for _, r := range group.Resources {
			if r.AddToScheme == nil {
				continue
			}
			if err := r.AddToScheme(scheme); err != nil {
				return fmt.Errorf("registering %s: %w", group.GroupVersion, err)
			}
		}
	}
	return nil
}

// NewStorage opens the stores of the group's resources; the keys are paths such as "pods/status".
func (g Group) NewStorage(o rest.Options) (map[string]genericrest.Storage, error) {
	all := map[string]genericrest.Storage{}
	for _, r := range g.Resources {
		storages, err := r.NewStorage(o)
		if err != nil {
			return nil, fmt.Errorf("installing %s: %w", g.GroupVersion, err)
		}
		maps.Copy(all, storages)
	}
	return all, nil
}
