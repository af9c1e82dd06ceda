package server

import (
	"context"
	"fmt"
	"net/url"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	genericadmission "k8s.io/apiserver/pkg/admission"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/apiserver/pkg/util/proxy"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/cache"

	"keelson.dev/kit/daemon"
	"keelson.dev/services/apiserver/internal/admission"
)

// mapperAge bounds how long plugins do not know a resource that is new.
const mapperAge = 30 * time.Second

// readPlugins reads the configuration of the admission plugins, before anything is opened.
func (s *Server) readPlugins(context.Context) (err error) {
	if s.plugins, err = admission.ReadConfiguration(s.options.AdmissionControlConfigFile); err != nil {
		return daemon.UsageError(fmt.Errorf("--admission-control-config-file: %w", err))
	}
	return nil
}

// admission builds the admission chain. The mapper is what its plugins know of the served resources.
func (s *Server) admission() (chain genericadmission.Interface, mapper meta.ResettableRESTMapper, err error) {
	dynamicClient, err := dynamic.NewForConfig(s.config.LoopbackClientConfig)
	if err != nil {
		return nil, nil, fmt.Errorf("making the loopback client: %w", err)
	}
	ranges, err := serviceRanges(s.options.ServiceClusterIPRange)
	if err != nil {
		return nil, nil, err
	}
	mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(s.client.Discovery()))
	chain, err = admission.New(admission.Config{
		Plugins:  s.plugins,
		Enabled:  s.options.EnableAdmissionPlugins,
		ServerID: s.config.APIServerID,
		Client:   s.client, Dynamic: dynamicClient, Informers: s.informers, RESTMapper: mapper,
		Pods: func(ctx context.Context, namespace string) ([]corev1.Pod, error) {
			return s.objects.Pods(ctx, namespace, labels.Everything())
		},
		Nodes: func(ctx context.Context) ([]corev1.Node, error) {
			return s.objects.Nodes(ctx, labels.Everything())
		},
		Node:          s.objects.CurrentNode,
		ServiceRanges: ranges,
		Authorizer:    s.authority,
		Features:      utilfeature.DefaultFeatureGate,
		Version:       s.config.EffectiveVersion,
		Drained:       s.config.DrainedNotify(),
		Services:      services{&s.objects},
		Webhooks: webhook.NewDefaultAuthenticationInfoResolverWrapper(nil, nil, s.config.LoopbackClientConfig,
			s.config.TracerProvider),
	})
	return chain, mapper, err
}

// forget drops now and then what is known of the served resources.
func forget(ctx context.Context, drop func()) {
	ticker := time.NewTicker(mapperAge)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			drop()
		}
	}
}

// services finds the Services of webhooks at their cluster IPs.
type services struct{ objects *storedObjects }

// ResolveEndpoint implements webhook.ServiceResolver.
func (s services) ResolveEndpoint(namespace, name string, port int32) (*url.URL, error) {
	service, err := stored[*corev1.Service](context.Background(), s.objects, "services", namespace, name)
	if err != nil {
		return nil, err
	}
	found := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	if err := found.Add(service); err != nil {
		return nil, err
	}
	return proxy.ResolveCluster(corelisters.NewServiceLister(found), namespace, name, port)
}
