// Package apiextensions serves CustomResourceDefinitions and the objects of the kinds that they define. The library
// does the work; here stands what the rest of the apiserver needs to know of it.
//
//	server.go         the last server of the delegation chain
//	reading.go        what is answered as long as the definitions are being read
//	decide_groups.go  which versions of which groups are defined (pure)
package apiextensions

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/emicklei/go-restful/v3"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver"
	listers "k8s.io/apiextensions-apiserver/pkg/client/listers/apiextensions/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/registry/generic"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/tools/cache"

	"keelson.dev/kit/follow"
)

// Group is the group of CustomResourceDefinitions, Version its only one.
const (
	Group   = "apiextensions.k8s.io"
	Version = "v1"
)

// Scheme has the types of the group, Codecs their forms.
var (
	Scheme = apiserver.Scheme
	Codecs = apiserver.Codecs
)

// Config is what a Server works with.
type Config struct {
	// Definitions is where CustomResourceDefinitions are stored, Objects where the objects of their kinds are.
	Definitions, Objects generic.RESTOptionsGetter
	// Services finds the Services of conversion webhooks, Webhooks how to identify to them.
	Services webhook.ServiceResolver
	Webhooks webhook.AuthenticationInfoResolverWrapper
	// Shared says that other apiservers may be on the store: a kind is then established only when they know it too.
	Shared bool
}

// Server answers requests for CustomResourceDefinitions and for what they define.
type Server struct {
	*genericapiserver.GenericAPIServer
	informer cache.SharedIndexInformer
	lister   listers.CustomResourceDefinitionLister
	revision atomic.Uint64
	// started fails until discovery tells of all definitions that there were at the start; told remembers that it does.
	started healthz.HealthChecker
	told    atomic.Bool
}

// New makes the server, which hands to next what is no kind that it knows. generic is its own: it is changed.
func New(generic *genericapiserver.Config, next genericapiserver.DelegationTarget, c Config) (*Server, error) {
	generic.RESTOptionsGetter = c.Definitions
	generic.SkipOpenAPIInstallation = true // the core publishes the documents of both
	generic.MergedResourceConfig = serverstorage.NewResourceConfig()
	generic.MergedResourceConfig.EnableVersions(apiextensionsv1.SchemeGroupVersion)
	config := &apiserver.Config{
		GenericConfig: &genericapiserver.RecommendedConfig{Config: *generic},
		ExtraConfig: apiserver.ExtraConfig{CRDRESTOptionsGetter: c.Objects, MasterCount: 1, ServiceResolver: c.Services,
			AuthResolverWrapper: c.Webhooks},
	}
	if c.Shared {
		config.ExtraConfig.MasterCount = 2
	}
	s := &Server{}
	built, err := config.Complete().New(behind{next, generic.Serializer, s})
	if err != nil {
		return nil, fmt.Errorf("building the server of CustomResourceDefinitions: %w", err)
	}
	definitions := built.Informers.Apiextensions().V1().CustomResourceDefinitions()
	s.GenericAPIServer, s.informer, s.lister = built.GenericAPIServer, definitions.Informer(), definitions.Lister()
	if s.started = startCheck(built.GenericAPIServer); s.started == nil {
		built.GenericAPIServer.Destroy()
		return nil, errors.New("the server of CustomResourceDefinitions does not say when it has started")
	}
	if err := s.Follow(func() { s.revision.Add(1) }); err != nil {
		built.GenericAPIServer.Destroy()
		return nil, err
	}
	return s, nil
}

// Follow calls changed whenever a definition is new, changed or gone.
func (s *Server) Follow(changed func()) error {
	if _, err := s.informer.AddEventHandler(follow.Changes(changed)); err != nil {
		return fmt.Errorf("watching CustomResourceDefinitions: %w", err)
	}
	return nil
}

// HasSynced reports whether the definitions have been read that there were at the start.
func (s *Server) HasSynced() bool { return s.informer.HasSynced() }

// Revision is another one after each change of the definitions.
func (s *Server) Revision() uint64 { return s.revision.Load() }

// Definitions are those that there are now. They are not to be changed.
func (s *Server) Definitions() []*apiextensionsv1.CustomResourceDefinition {
	all, err := s.lister.List(labels.Everything())
	if err != nil { // which reading from memory has none of
		return nil
	}
	return all
}

// Versions are those of each group that are served now.
func (s *Server) Versions() map[string][]string { return decideVersions(s.Definitions()) }

// WebServices answer requests for CustomResourceDefinitions themselves.
func (s *Server) WebServices() []*restful.WebService {
	var own []*restful.WebService
	for _, service := range s.Handler.GoRestfulContainer.RegisteredWebServices() {
		switch service.RootPath() {
		case "/apis/" + Group, "/apis/" + Group + "/" + Version:
			own = append(own, service)
		}
	}
	return own
}
