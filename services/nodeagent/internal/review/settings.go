package review

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"
)

// The flags, the same as the kubelet's.
const (
	flagTokens   = "authentication-token-webhook"
	flagTokenTTL = "authentication-token-webhook-cache-ttl"
	flagAllowed  = "authorization-webhook-cache-authorized-ttl"
	flagDenied   = "authorization-webhook-cache-unauthorized-ttl"
)

// Settings determine whether tokens are accepted, and how long answers of the API are remembered.
type Settings struct {
	// Tokens means that bearer tokens are accepted.
	Tokens bool
	// TokenTTL is how long the user of a token is remembered, at most until the token expires.
	TokenTTL time.Duration
	// AllowedTTL and DeniedTTL are how long it is remembered that a user may do something, or may not.
	AllowedTTL, DeniedTTL time.Duration
}

// DefaultSettings returns the settings of a node without flags.
func DefaultSettings() Settings {
	return Settings{Tokens: true, TokenTTL: 2 * time.Minute, AllowedTTL: 5 * time.Minute, DeniedTTL: 30 * time.Second}
}

// AddFlags adds the flags.
func (s *Settings) AddFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&s.Tokens, flagTokens, s.Tokens,
		"take bearer tokens at the node API, whose users the API server is asked for (TokenReview)")
	fs.DurationVar(&s.TokenTTL, flagTokenTTL, s.TokenTTL,
		"how long the user of a bearer token is remembered, at most until the token ends; 0 not at all")
	fs.DurationVar(&s.AllowedTTL, flagAllowed, s.AllowedTTL,
		"how long is remembered that a user may use the node API (SubjectAccessReview); 0 not at all")
	fs.DurationVar(&s.DeniedTTL, flagDenied, s.DeniedTTL,
		"how long is remembered that a user may not use the node API; 0 not at all")
}

// Validate returns an error if the flags are invalid.
func (s *Settings) Validate() error {
	for _, ttl := range []struct {
		flag  string
		value time.Duration
	}{{flagTokenTTL, s.TokenTTL}, {flagAllowed, s.AllowedTTL}, {flagDenied, s.DeniedTTL}} {
		if ttl.value < 0 {
			return fmt.Errorf("--%s: %v must be at least 0s", ttl.flag, ttl.value)
		}
	}
	return nil
}
