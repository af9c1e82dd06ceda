package server

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	genericadmission "k8s.io/apiserver/pkg/admission"
	genericapiserver "k8s.io/apiserver/pkg/server"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"keelson.dev/kit/daemon"
	"keelson.dev/services/apiserver/internal/admission"
	"keelson.dev/services/apiserver/internal/aggregation"
	"keelson.dev/services/apiserver/internal/httpproxy"
	"keelson.dev/services/apiserver/internal/webhookcall"
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
	client, err := newWaitingClient(s.client, s.informers, s.config.DrainedNotify())
	if err != nil {
		return nil, nil, err
	}
	mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(s.client.Discovery()))
	chain, err = admission.New(admission.Config{
		Plugins:  s.plugins,
		Enabled:  s.options.EnableAdmissionPlugins,
		Disabled: s.options.DisableAdmissionPlugins,
		ServerID: s.config.APIServerID,
		Client:   client, Dynamic: dynamicClient, Informers: s.informers, RESTMapper: mapper,
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
		Webhooks:      s.webhooks(s.config, webhookcall.MaxAnswer),
	})
	return chain, mapper, err
}

// webhooks is how the apiserver calls webhooks, of whose answers it takes at most so many bytes.
func (s *Server) webhooks(
	config *genericapiserver.Config, maxAnswer int,
) webhook.AuthenticationInfoResolverWrapper {
	return webhookcall.Bounded(webhook.NewDefaultAuthenticationInfoResolverWrapper(nil, nil,
		config.LoopbackClientConfig, config.TracerProvider),
		webhookcall.Config{MaxAnswer: maxAnswer, CheckAddress: httpproxy.CheckAddress, Dial: s.options.DialExtension})
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

// services finds the endpoints of webhooks' Services, as those of APIServices are found: the apiserver may be on a
// machine that has no way to cluster IPs.
type services struct{ aggregation.Objects }

// ResolveEndpoint implements webhook.ServiceResolver.
func (s services) ResolveEndpoint(namespace, name string, port int32) (*url.URL, error) {
	host, verdict := aggregation.Target(context.Background(), s.Objects,
		&apiregistration.ServiceReference{Namespace: namespace, Name: name, Port: &port})
	if host == "" {
		return nil, errors.New(verdict.Message)
	}
	return &url.URL{Scheme: "https", Host: host}, nil
}
