package server

import (
	"errors"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/labels"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/client-go/tools/cache"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	aggregatorclient "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset"
	aggregatorinformers "k8s.io/kube-aggregator/pkg/client/informers/externalversions"
	apiregistrationinformers "k8s.io/kube-aggregator/pkg/client/informers/externalversions/apiregistration/v1"

	"keelson.dev/kit/follow"
	"keelson.dev/services/apiserver/internal/aggregation"
	"keelson.dev/services/apiserver/internal/httpproxy"
)

// aggregate hands on the requests that this server does not know and that an APIService gives to another; all else goes
// on to next. It returns what must be true before the server is ready: that it knows the APIServices.
func (s *Server) aggregate(next genericapiserver.DelegationTarget) (healthz.HealthChecker, error) {
	client, err := aggregatorclient.NewForConfig(s.config.LoopbackClientConfig)
	if err != nil {
		return nil, fmt.Errorf("making the client for APIServices: %w", err)
	}
	s.aggregator = aggregation.New(aggregation.Config{
		APIServices:  client.ApiregistrationV1().APIServices(),
		Objects:      &s.objects,
		Served:       s.served,
		Identity:     &s.frontProxy,
		CheckAddress: httpproxy.CheckAddress,
		Dial:         s.options.DialExtension,
		Groups:       s.core.DiscoveryGroupManager,
		Resources:    s.core.AggregatedDiscoveryGroupManager,
		Serializer:   s.codecs,
		Log:          s.log.Named("aggregation"),
	})
	s.core.RegisterDestroyFunc(s.aggregator.Close)
	others := next.UnprotectedHandler()
	if others == nil {
		others = http.NotFoundHandler()
	}
	// The library asks this handler for what no group of the server's own has the path of: none is shadowed.
	s.core.Handler.NonGoRestfulMux.UnlistedHandlePrefix(aggregation.Prefix, s.aggregator.Over(others))

	informer := aggregatorinformers.NewSharedInformerFactory(client, 0).Apiregistration().V1().APIServices()
	followed, err := informer.Informer().AddEventHandler(follow.Handler(s.aggregator.Set, s.aggregator.Delete))
	if err != nil {
		return nil, fmt.Errorf("watching APIServices: %w", err)
	}
	locals, err := s.locals(client, informer)
	if err != nil {
		return nil, err
	}
	err = s.extensions.Follow(func() {
		s.aggregator.Define(s.extensions.Versions())
		locals.Changed()
	})
	if err != nil {
		return nil, err
	}
	err = s.core.AddPostStartHook("keelson-aggregation", func(hook genericapiserver.PostStartHookContext) error {
		go informer.Informer().RunWithContext(hook)
		go s.aggregator.Run(hook)
		go locals.Run(hook)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("adding the start hook of the aggregation: %w", err)
	}
	return apiServicesRead(followed.HasSynced), nil
}

// locals keeps the APIServices of what is not handed on.
func (s *Server) locals(
	client aggregatorclient.Interface, informer apiregistrationinformers.APIServiceInformer,
) (*aggregation.Locals, error) {
	locals := aggregation.NewLocals(aggregation.Locals{
		APIServices: client.ApiregistrationV1().APIServices(),
		Stored: func() []*apiregistration.APIService {
			all, err := informer.Lister().List(labels.Everything())
			if err != nil { // which reading from memory has none of
				return nil
			}
			return all
		},
		Served:  s.served,
		Defined: s.extensions.Versions,
		Log:     s.log.Named("aggregation"),
	})
	changes, err := informer.Informer().AddEventHandler(follow.Changes(locals.Changed))
	if err != nil {
		return nil, fmt.Errorf("watching APIServices: %w", err)
	}
	locals.Read = []cache.InformerSynced{changes.HasSynced, s.extensions.HasSynced}
	return locals, nil
}

func apiServicesRead(synced cache.InformerSynced) healthz.HealthChecker {
	return healthz.NamedCheck("aggregation", func(*http.Request) error {
		if !synced() {
			return errors.New("the APIServices are still being read")
		}
		return nil
	})
}
