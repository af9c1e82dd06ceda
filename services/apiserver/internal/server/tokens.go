package server

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/daemon"
	"keelson.dev/services/apiserver/internal/authn/satoken"
	"keelson.dev/services/apiserver/internal/legacytoken"
)

// tokens issues and verifies service-account tokens.
type tokens struct {
	issuer   *satoken.Issuer
	verifier *satoken.Verifier
	keys     satoken.Keys
}

// newTokens returns nil when no key is configured.
func (o *Options) newTokens(objects satoken.Objects, record func(context.Context, *corev1.Secret, string)) (*tokens,
	error) {
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
	t.verifier = satoken.NewVerifier([]string{o.ServiceAccountIssuer}, o.audiences(), keys, objects, record)
	return t, nil
}

// recordUse writes down that the token of the Secret was used on the day.
func (s *Server) recordUse(ctx context.Context, secret *corev1.Secret, day string) {
	legacytoken.RecordUse(ctx, s.client, s.log.Named("legacytoken"), secret, day)
}

// newKeeper returns who keeps the Secrets with tokens.
func (s *Server) newKeeper() (*legacytoken.Keeper, error) {
	c := legacytoken.Config{
		Client:        s.client,
		Accounts:      s.informers.Core().V1().ServiceAccounts().Informer(),
		CleanUpPeriod: s.options.LegacyTokenCleanUpPeriod,
		Now:           time.Now,
		Log:           s.log.Named("legacytoken"),
	}
	if s.tokens != nil {
		c.Issuer = s.tokens.issuer
	}
	return legacytoken.New(c)
}
