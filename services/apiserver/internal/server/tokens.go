package server

import (
	"fmt"

	"keelson.dev/kit/daemon"
	"keelson.dev/services/apiserver/internal/authn/satoken"
)

// tokens issues and verifies service-account tokens.
type tokens struct {
	issuer   *satoken.Issuer
	verifier *satoken.Verifier
	keys     satoken.Keys
}

// newTokens returns nil when no key is configured.
func (o *Options) newTokens(objects satoken.Objects) (*tokens, error) {
	keys, err := satoken.LoadKeys(o.ServiceAccountKeyFiles...)
	if err != nil {
		return nil, daemon.UsageError(fmt.Errorf("--service-account-key-file: %w", err))
	}
	t := &tokens{keys: keys}
	if o.ServiceAccountSigningKeyFile != "" {
		if t.issuer, err = satoken.LoadIssuer(o.ServiceAccountIssuer, o.ServiceAccountSigningKeyFile); err != nil {
			return nil, daemon.UsageError(fmt.Errorf("--service-account-signing-key-file: %w", err))
		}
		if err := keys.Add(t.issuer.Public()); err != nil {
			return nil, daemon.UsageError(fmt.Errorf("--service-account-signing-key-file: %w", err))
		}
	}
	if len(keys) == 0 {
		return nil, nil
	}
	t.verifier = satoken.NewVerifier([]string{o.ServiceAccountIssuer}, o.audiences(), keys, objects)
	return t, nil
}
