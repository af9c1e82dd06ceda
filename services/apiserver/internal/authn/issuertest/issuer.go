// Package issuertest is an issuer of OpenID Connect tokens for tests: it has a description, keys that change, and
// answers what it is told to.
package issuertest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

const (
	// Description is the path that an apiserver asks first.
	Description = "/.well-known/openid-configuration"
	// Keys is where the keys are.
	Keys = "/keys"
	// Audience is whom tokens are for that are made without one.
	Audience = "mesh"
)

// Issuer issues tokens. Make it with Start.
type Issuer struct {
	*httptest.Server

	mu      sync.Mutex
	serial  int
	key     jose.JSONWebKey
	answers map[string]http.HandlerFunc
	asked   map[string]int
}

// Start serves an issuer until the test ends.
func Start(t testing.TB) *Issuer {
	t.Helper()
	i := &Issuer{asked: map[string]int{}}
	i.answers = map[string]http.HandlerFunc{Description: i.describe, Keys: i.list}
	i.Rotate(t)
	i.Server = httptest.NewTLSServer(i)
	t.Cleanup(func() {
		i.CloseClientConnections()
		i.Server.Close()
	})
	return i
}

// Authority is the PEM certificate by which the issuer is known.
func (i *Issuer) Authority() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.Certificate().Raw}))
}

// Rotate takes another key: tokens of the one before are no longer to be believed.
func (i *Issuer) Rotate(t testing.TB) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.serial++
	i.key = jose.JSONWebKey{Key: key, KeyID: fmt.Sprint(i.serial), Algorithm: string(jose.ES256), Use: "sig"}
}

// Answer has another handler serve a path; nil: as before.
func (i *Issuer) Answer(path string, by http.HandlerFunc) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if by == nil {
		by = map[string]http.HandlerFunc{Description: i.describe, Keys: i.list}[path]
	}
	i.answers[path] = by
}

// Asked is how often a path was asked for.
func (i *Issuer) Asked(path string) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.asked[path]
}

// Token is a token with the claims, which may be nil, and those that a good one has beside.
func (i *Issuer) Token(t testing.TB, claims map[string]any) string {
	t.Helper()
	i.mu.Lock()
	key := i.key
	i.mu.Unlock()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, nil)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign(i.payload(t, claims))
	if err != nil {
		t.Fatal(err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// Unsigned is such a token with the algorithm none.
func (i *Issuer) Unsigned(t testing.TB, claims map[string]any) string {
	t.Helper()
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(`{"alg":"none","typ":"JWT"}`)) + "." + encode(i.payload(t, claims)) + "."
}

func (i *Issuer) payload(t testing.TB, claims map[string]any) []byte {
	t.Helper()
	now := time.Now()
	all := map[string]any{"iss": i.URL, "aud": Audience, "sub": "ann", "iat": now.Unix(),
		"exp": now.Add(time.Hour).Unix()}
	maps.Copy(all, claims)
	payload, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return payload
}

// ServeHTTP implements http.Handler.
func (i *Issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	i.asked[r.URL.Path]++
	answer := i.answers[r.URL.Path]
	i.mu.Unlock()
	if answer == nil {
		http.NotFound(w, r)
		return
	}
	answer(w, r)
}

func (i *Issuer) describe(w http.ResponseWriter, _ *http.Request) {
	write(w, map[string]any{"issuer": i.URL, "jwks_uri": i.URL + Keys, "response_types_supported": []string{"id_token"},
		"subject_types_supported": []string{"public"}, "id_token_signing_alg_values_supported": []string{"ES256"}})
}

func (i *Issuer) list(w http.ResponseWriter, _ *http.Request) {
	i.mu.Lock()
	key := i.key.Public()
	i.mu.Unlock()
	write(w, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{key}})
}

func write(w http.ResponseWriter, what any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(what)
}

// Hang answers nothing until the client goes.
func Hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
