package server

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/client-go/tools/cache"

	"keelson.dev/services/apiserver/internal/authz"
	"keelson.dev/services/apiserver/internal/bootstrap"
)

// addHooks adds what runs once the server serves, and what must be true before it is ready.
func (s *Server) addHooks() error {
	synced, err := authz.Feed(s.policy, s.informers)
	if err != nil {
		return err
	}
	b := bootstrap.New(bootstrap.Config{
		Client:       s.client,
		Log:          s.log.Named("bootstrap"),
		ServiceRange: s.options.ServiceClusterIPRange,
		Port:         s.port(),
		Address:      s.podAddress(),
	})
	if err := s.followRoles(b); err != nil {
		return err
	}
	err = s.generic.AddPostStartHook("keelson-bootstrap", func(hook genericapiserver.PostStartHookContext) error {
		go b.Run(hook)
		go b.RunMember(hook)
		return nil
	})
	if err != nil {
		return fmt.Errorf("adding the start hooks: %w", err)
	}
	if err := s.generic.AddPreShutdownHook("keelson-leave", b.Leave); err != nil {
		return fmt.Errorf("adding the stop hooks: %w", err)
	}
	return s.generic.AddReadyzChecks(rolesRead(synced), healthz.NamedCheck("bootstrap", func(*http.Request) error {
		if !b.Done() {
			return errors.New("the system's objects are still being made")
		}
		return nil
	}))
}

// followRoles tells the bootstrapper of each change that may concern an aggregated role.
func (s *Server) followRoles(b *bootstrap.Bootstrapper) error {
	_, err := s.informers.Rbac().V1().ClusterRoles().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { b.RolesChanged() },
		UpdateFunc: func(any, any) { b.RolesChanged() },
		DeleteFunc: func(any) { b.RolesChanged() },
	})
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
