package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"go.etcd.io/etcd/client/v3/kubernetes"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"

	"keelson.dev/kit/daemon"
	"keelson.dev/services/apiserver/internal/admission/pluginconfig"
	"keelson.dev/services/apiserver/internal/aggregation"
	"keelson.dev/services/apiserver/internal/apiextensions"
	"keelson.dev/services/apiserver/internal/authn"
	"keelson.dev/services/apiserver/internal/authn/authenticationconfig"
	"keelson.dev/services/apiserver/internal/authz"
	"keelson.dev/services/apiserver/internal/authz/authorizationconfig"
	"keelson.dev/services/apiserver/internal/authz/rbac"
	"keelson.dev/services/apiserver/internal/eventbatch"
	"keelson.dev/services/apiserver/internal/frontproxy"
	"keelson.dev/services/apiserver/internal/openapi"
	"keelson.dev/services/apiserver/internal/registry"
	"keelson.dev/services/apiserver/internal/routes"
	"keelson.dev/services/apiserver/internal/scheme"
	"keelson.dev/services/apiserver/internal/storage"
	"keelson.dev/services/apiserver/internal/storage/encryption"
)

// Server is an apiserver that has been put together and can run once.
type Server struct {
	options  *Options
	log      *zap.Logger
	listener net.Listener
	scheme   *runtime.Scheme
	codecs   serializer.CodecFactory

	plugins  pluginconfig.Plugins
	starting *starting
	embedded *storage.Embedded
	// enabled is what is served.
	enabled enabled
	// encryption is of what the store keeps.
	encryption *encryption.Providers
	store      *storage.Store

	config    *genericapiserver.Config
	policy    *rbac.Policy
	authority *authz.Authorizer
	authn     authn.Authenticators
	// authorization and authentication follow their files. clientCA verifies the certificates of users; nil: none does.
	authorization  *authorizationconfig.Configuration
	authentication *authenticationconfig.Authenticators
	clientCA       *dynamiccertificates.DynamicFileCAContent
	tokens         *tokens
	objects        storedObjects
	informers      informers.SharedInformerFactory
	client         clientset.Interface
	// mapper is what admission plugins know of the served resources.
	mapper  meta.ResettableRESTMapper
	batches eventbatch.Batches
	// frontProxy is who the apiserver is to the servers of APIServices, aggregator hands requests on to them.
	frontProxy frontproxy.Identity
	aggregator *aggregation.Aggregator
	// extensions serves what CustomResourceDefinitions define.
	extensions *apiextensions.Server
	// served are the versions of each group.
	served map[string][]string

	core *genericapiserver.GenericAPIServer
	// first is the server that gets each request first, and runs the others.
	first link
}

// New opens the store and the port. The caller must call Run, or Close.
func New(ctx context.Context, options *Options, log *zap.Logger) (*Server, error) {
	listener, err := options.listen(ctx)
	if err != nil {
		return nil, err
	}
	s := &Server{options: options, log: log, listener: listener}
	if err := s.assemble(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// assemble runs the steps of construction in the order of their needs.
func (s *Server) assemble(ctx context.Context) error {
	steps := []func(context.Context) error{
		s.readPlugins, s.openScheme, s.openServing, s.openEncryption, s.openStore, s.openConfig,
		s.openAuth, s.openServers,
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Address is HOST:PORT of the listener.
func (s *Server) Address() string { return s.listener.Addr().String() }

// LoopbackConfig is a connection with all rights, for this process alone.
func (s *Server) LoopbackConfig() *restclient.Config {
	return restclient.CopyConfig(s.config.LoopbackClientConfig)
}

// Run serves until ctx ends and everything has stopped.
func (s *Server) Run(ctx context.Context) error {
	defer s.closeStore()
	defer s.closeAuth()
	if err := s.endStarting(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var failed error
	done := make(chan struct{})
	go func() {
		defer close(done)
		failed = s.watchStore(ctx)
		cancel()
	}()
	err := s.first.run(ctx)
	cancel()
	<-done
	if err := errors.Join(err, failed); err != nil {
		return fmt.Errorf("serving: %w", err)
	}
	return nil
}

// Close gives up what New opened, when Run is not called.
func (s *Server) Close() {
	_ = s.endStarting()
	if s.first.server != nil {
		s.first.server.Destroy()
	}
	s.closeAuth()
	s.closeStore()
	_ = s.listener.Close()
}

func (s *Server) closeStore() {
	if s.store != nil {
		s.store.Close()
	}
	if s.embedded != nil {
		s.embedded.Close()
	}
	if s.encryption != nil {
		s.encryption.Close()
	}
}

// watchStore ends when the embedded store ends by itself, which is an error, or with ctx.
func (s *Server) watchStore(ctx context.Context) error {
	if s.embedded == nil {
		<-ctx.Done()
		return nil
	}
	select {
	case err := <-s.embedded.Failed():
		return fmt.Errorf("the embedded store ended: %w", err)
	case <-ctx.Done():
		return nil
	}
}

func (s *Server) openScheme(context.Context) (err error) {
	if s.scheme, err = scheme.New(); err != nil {
		return err
	}
	if err := registry.AddToScheme(s.scheme); err != nil {
		return err
	}
	s.codecs = scheme.Codecs(s.scheme)
	return nil
}

// openServing takes the certificates and answers requests with what the start waits for.
func (s *Server) openServing(context.Context) (err error) {
	if s.enabled, err = s.options.enabled(s.scheme, registry.Groups(registry.Config{})); err != nil {
		return err
	}
	if s.config, err = s.options.newConfig(s.scheme, s.listener, s.enabled); err != nil {
		return err
	}
	s.config.BuildHandlerChainFunc = func(h http.Handler, c *genericapiserver.Config) http.Handler {
		return s.options.chain(s.batches.Over(s.extended(h, c.Serializer)), c)
	}
	if listener, ok := s.listener.(*net.TCPListener); ok {
		s.starting, err = serveStarting(listener, s.config.SecureServing, s.options.Connections)
	}
	return err
}

// doing says what the start waits for from now on; public is what clients are told.
func (s *Server) doing(public, detail string) {
	if s.starting != nil {
		s.starting.doing.Store(public)
	}
	if s.options.Progress != nil {
		s.options.Progress(public + detail)
	}
}

// endStarting frees the port for the server itself.
func (s *Server) endStarting() error {
	if s.starting == nil {
		return nil
	}
	defer func() { s.starting = nil }()
	if err := s.starting.handOver(); err != nil {
		return fmt.Errorf("taking over the port: %w", err)
	}
	return nil
}

// openEncryption comes before the store, so that a file that is wrong leaves the store alone.
func (s *Server) openEncryption(context.Context) (err error) {
	if s.encryption, err = encryption.Open(s.options.Encryption, s.config.APIServerID); err != nil {
		return daemon.UsageError(fmt.Errorf("--encryption-provider-config: %w", err))
	}
	s.config.HealthzChecks = append(s.config.HealthzChecks, s.encryption.HealthChecks...)
	s.config.ReadyzChecks = append(s.config.ReadyzChecks, s.encryption.HealthChecks...)
	return nil
}

func (s *Server) openStore(ctx context.Context) (err error) {
	var client *kubernetes.Client
	if len(s.options.Etcd.Servers) > 0 {
		s.doing("connecting to its store", fmt.Sprintf(" at %v", s.options.Etcd.Servers))
		if client, err = s.options.Etcd.Open(ctx, s.log); err != nil {
			return err
		}
	} else {
		s.doing("opening its store", " in "+s.options.DataDir)
		peers := s.options.Peers
		peers.Doing = func(what string) { s.doing("opening its store", ": "+what) }
		if s.embedded, err = storage.StartMember(ctx, s.options.DataDir, peers, s.log); err != nil {
			return err
		}
		client = s.embedded.Client()
	}
	s.store = storage.New(client, s.scheme, s.codecs, s.options.sizes, s.encryption)
	s.store.Counts = s.config.StorageObjectCountTracker
	s.doing("preparing to serve", "")
	return nil
}

func (s *Server) openConfig(context.Context) (err error) {
	s.config.RESTOptionsGetter = s.store
	s.addStoreChecks()
	if s.client, err = clientset.NewForConfig(s.config.LoopbackClientConfig); err != nil {
		return fmt.Errorf("making the loopback client: %w", err)
	}
	s.informers = informers.NewSharedInformerFactory(s.client, 10*time.Hour)
	s.config.FlowControl = s.options.FlowControl.of(s.informers, s.client)
	return nil
}

// addStoreChecks says by the field's names whether the store answers. They are two so that who leaves out of /readyz
// what /livez says does not leave out this.
func (s *Server) addStoreChecks() {
	answers := func(*http.Request) error { return s.store.Check() }
	s.config.AddHealthChecks(healthz.NamedCheck("etcd", answers))
	s.config.AddReadyzChecks(healthz.NamedCheck("etcd-readiness", answers))
}

func (s *Server) openServers(context.Context) (err error) {
	if s.config.AdmissionControl, s.mapper, err = s.admission(); err != nil {
		return err
	}
	// The types of managed fields are made of the definitions; after that only the documents are, which few ask for.
	defer openapi.Forget(s.config.OpenAPIV3Config)
	s.first, err = s.options.delegates.delegation(s.config, s.buildCore, s.extend)
	return err
}

// buildCore makes the server of everything but what others aggregate or define.
func (s *Server) buildCore(
	config *genericapiserver.Config, next genericapiserver.DelegationTarget,
) (_ link, err error) {
	s.config = config
	config.SkipOpenAPIInstallation = true
	s.core, err = config.Complete(s.informers).New("keelson-apiserver", next)
	if err != nil {
		return link{}, fmt.Errorf("building the server: %w", err)
	}
	defer func() {
		if err != nil {
			s.core.Destroy()
		}
	}()
	s.core.Handler.GoRestfulContainer.Router(routes.New())
	if err := s.install(); err != nil {
		return link{}, err
	}
	aggregated, err := s.aggregate(next)
	if err != nil {
		return link{}, err
	}
	openapi.Serve(s.core.Handler, config.OpenAPIConfig, config.OpenAPIV3Config, s.extensions,
		func() openapi.Elsewhere { return s.aggregator.Documents() })
	ready, err := s.addHooks()
	return link{server: s.core, ready: append(ready, aggregated)}, err
}
