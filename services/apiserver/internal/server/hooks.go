package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"time"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/client-go/tools/cache"

	"keelson.dev/kit/follow"
	"keelson.dev/services/apiserver/internal/authz"
	"keelson.dev/services/apiserver/internal/bootstrap"
	"keelson.dev/services/apiserver/internal/bootstraptoken"
)

// addHooks adds what runs once the server serves, and returns what must be true before it is ready.
func (s *Server) addHooks() ([]healthz.HealthChecker, error) {
	synced, err := authz.Feed(s.policy, s.informers)
	if err != nil {
		return nil, err
	}
	ranges, err := serviceRanges(s.options.ServiceClusterIPRange)
	if err != nil {
		return nil, err
	}
	b := bootstrap.New(bootstrap.Config{
		Client:        s.client,
		Log:           s.log.Named("bootstrap"),
		ServiceRanges: ranges,
		Port:          s.port(),
		Address:       s.podAddress(),
		FrontProxy:    &s.frontProxy,
		ClientAuthority: func() []byte {
			if s.clientCA == nil {
				return nil
			}
			return s.clientCA.CurrentCABundleContent()
		},
	})
	if err := s.followRoles(b); err != nil {
		return nil, err
	}
	keeper, err := s.newKeeper()
	if err != nil {
		return nil, err
	}
	checker, err := s.newPolicyChecker(s.mapper)
	if err != nil {
		return nil, err
	}
	err = s.core.AddPostStartHook("keelson-bootstrap", func(hook genericapiserver.PostStartHookContext) error {
		go b.Run(hook)
		go s.awaitRoles(hook, synced)
		go b.RunMember(hook)
		go forget(hook, s.mapper.Reset)
		go s.repairAddresses(hook)
		go keeper.Run(hook)
		if s.options.EnableBootstrapTokenAuth {
			tokens := &bootstraptoken.Keeper{Client: s.client, Now: time.Now, Log: s.log.Named("bootstraptoken")}
			go tokens.Run(hook)
		}
		go checker.Run(hook)
		s.encryption.Follow()
		s.followAuth()
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("adding the start hooks: %w", err)
	}
	if err := s.core.AddPreShutdownHook("keelson-leave", b.Leave); err != nil {
		return nil, fmt.Errorf("adding the stop hooks: %w", err)
	}
	return []healthz.HealthChecker{rolesRead(synced), healthz.NamedCheck("bootstrap", func(*http.Request) error {
		if !b.Done() {
			return errors.New("the system's objects are still being made")
		}
		return nil
	})}, nil
}

// awaitRoles tells the authorizer when it knows all roles.
func (s *Server) awaitRoles(ctx context.Context, synced []cache.InformerSynced) {
	if cache.WaitForCacheSync(ctx.Done(), synced...) {
		s.authority.PolicyIsComplete()
	}
}

// followRoles tells the bootstrapper of each change that may concern an aggregated role.
func (s *Server) followRoles(b *bootstrap.Bootstrapper) error {
	_, err := s.informers.Rbac().V1().ClusterRoles().Informer().AddEventHandler(follow.Changes(b.RolesChanged))
	if err != nil {
		return fmt.Errorf("watching ClusterRoles: %w", err)
	}
	return nil
}

func rolesRead(synced []cache.InformerSynced) healthz.HealthChecker {
	return healthz.NamedCheck("rbac", func(*http.Request) error {
		for _, hasSynced := range synced {
			if !hasSynced() {
				return errors.New("roles and bindings are still being read")
			}
		}
		return nil
	})
}

func (s *Server) port() int { return s.listener.Addr().(*net.TCPAddr).Port }

// podAddress is where Pods reach this server, or the zero value.
func (s *Server) podAddress() netip.AddrPort {
	ip, ok := netip.AddrFromSlice(s.config.PublicAddress)
	if !ok {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(ip.Unmap(), uint16(s.port()))
}
