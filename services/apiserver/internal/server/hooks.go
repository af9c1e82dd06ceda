package server

import (
	"fmt"
	"net/http"

	"k8s.io/apiserver/pkg/server/healthz"

	"keelson.dev/services/apiserver/internal/authz"
)

// addHooks adds what runs once the server serves, and what must be true before it is ready.
func (s *Server) addHooks() error {
	synced, err := authz.Feed(s.policy, s.informers)
	if err != nil {
		return err
	}
	return s.generic.AddReadyzChecks(healthz.NamedCheck("rbac", func(*http.Request) error {
		for _, hasSynced := range synced {
			if !hasSynced() {
				return fmt.Errorf("roles and bindings are still being read")
			}
		}
		return nil
	}))
}
