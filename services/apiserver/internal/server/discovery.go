package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/go-jose/go-jose/v4"
	"k8s.io/apiserver/pkg/server/mux"
)

const (
	openIDPath = "/.well-known/openid-configuration"
	keysPath   = "/openid/v1/jwks"
)

// openID is what lets others verify the server's tokens (OpenID Connect Discovery 1.0).
type openID struct {
	Issuer        string   `json:"issuer"`
	KeysURI       string   `json:"jwks_uri"`
	ResponseTypes []string `json:"response_types_supported"`
	SubjectTypes  []string `json:"subject_types_supported"`
	Algorithms    []string `json:"id_token_signing_alg_values_supported"`
}

// serveDiscovery publishes the issuer and its keys.
func (s *Server) serveDiscovery(paths *mux.PathRecorderMux) error {
	if s.tokens == nil {
		return nil
	}
	set, err := s.tokens.keys.JSONWebKeySet()
	if err != nil {
		return fmt.Errorf("publishing the token keys: %w", err)
	}
	keys, err := json.Marshal(set)
	if err != nil {
		return fmt.Errorf("publishing the token keys: %w", err)
	}
	configuration, err := json.Marshal(openID{
		Issuer:        s.options.ServiceAccountIssuer,
		KeysURI:       "https://" + s.config.ExternalAddress + keysPath,
		ResponseTypes: []string{"id_token"},
		SubjectTypes:  []string{"public"},
		Algorithms:    algorithms(set),
	})
	if err != nil {
		return fmt.Errorf("publishing the token issuer: %w", err)
	}
	paths.Handle(openIDPath, document("application/json", configuration))
	paths.Handle(keysPath, document("application/jwk-set+json", keys))
	return nil
}

func algorithms(set jose.JSONWebKeySet) []string {
	var all []string
	for _, key := range set.Keys {
		if !slices.Contains(all, key.Algorithm) {
			all = append(all, key.Algorithm)
		}
	}
	slices.Sort(all)
	return all
}

func document(contentType string, body []byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Cache-Control", "public, max-age=3600")
		_, _ = w.Write(body)
	})
}
