package invite

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"time"

	"keelson.dev/cli/internal/plan"
)

// Bundle holds what a machine needs to become part of the control plane.
type Bundle struct {
	// Version is raised when an older keel could not apply it.
	Version int `json:"version"`
	// Expires is when keel stops accepting the bundle.
	Expires time.Time `json:"expires"`
	// Files holds the files of plan.SharedFiles.
	Files map[string][]byte `json:"files"`
	// Encryption is the store's encryption configuration; empty without one.
	Encryption []byte `json:"encryption,omitempty"`
	// Stores are the URLs of the store of which the machine gets a copy.
	Stores []string `json:"stores"`
	// Endpoint is the HOST:PORT at which other machines reach the control plane; empty without one.
	Endpoint string `json:"controlPlaneEndpoint,omitempty"`
}

// bundleVersion is the version that this keel writes and reads.
const bundleVersion = 1

// Lifetimes of the token and bundle for the control plane: they give full access to the mesh.
const (
	ControlPlaneLife    = 2 * time.Hour
	maxControlPlaneLife = 2 * time.Hour
)

// CheckControlPlaneLife validates the lifetime of a token for the control plane.
func CheckControlPlaneLife(life time.Duration) error {
	if life < time.Second || life > maxControlPlaneLife {
		return fmt.Errorf("--ttl: %v must be between a second and %v with --control-plane: whoever has such a token "+
			"and its key has the whole mesh", life, maxControlPlaneLife)
	}
	return nil
}

// Key is the key that encrypts a bundle; it is never stored in the mesh.
type Key [32]byte

// nonce precedes the ciphertext that is sealed with it.
type nonce [12]byte

// String returns the key in the form in which it is typed.
func (k Key) String() string { return hex.EncodeToString(k[:]) }

// KeyFlag is the flag for the key.
const KeyFlag = "--certificate-key"

var keyForm = regexp.MustCompile(`^[0-9a-f]{64}$`)

// ParseKey parses a typed key. Its errors do not contain the text.
func ParseKey(text string) (key Key, err error) {
	if !keyForm.MatchString(text) {
		return key, fmt.Errorf("%s: a key is 64 hexadecimal digits, as keel token create --control-plane prints it",
			KeyFlag)
	}
	_, err = hex.Decode(key[:], []byte(text))
	return key, err
}

// seal encrypts a bundle with the key, and binds it to its token. A nonce must not be used twice.
func seal(b Bundle, key Key, nonce nonce, token string) ([]byte, error) {
	b.Version = bundleVersion
	plain, err := json.Marshal(b)
	if err != nil {
		return nil, fmt.Errorf("writing what the control plane shares: %w", err)
	}
	sealing, err := key.cipher()
	if err != nil {
		return nil, err
	}
	return sealing.Seal(nonce[:], nonce[:], plain, boundTo(token)), nil
}

// errWrongKey is the error for a bundle that the key does not decrypt.
var errWrongKey = fmt.Errorf("%s: it is not the one that was printed with the token, or somebody has changed what the "+
	"mesh keeps for it: keel token create --control-plane --print-join-command on a machine of the control plane "+
	"makes another", KeyFlag)

// Unseal decrypts a bundle and checks it.
func Unseal(sealed []byte, key Key, token string, now time.Time) (b Bundle, err error) {
	sealing, err := key.cipher()
	if err != nil {
		return b, err
	}
	if len(sealed) < len(nonce{}) {
		return b, errWrongKey
	}
	first, text := sealed[:len(nonce{})], sealed[len(nonce{}):]
	plain, err := sealing.Open(nil, first, text, boundTo(token))
	if err != nil {
		return b, errWrongKey
	}
	if err := json.Unmarshal(plain, &b); err != nil {
		return b, fmt.Errorf("reading what the control plane shares: %w", err)
	}
	return b, b.check(now)
}

func (b Bundle) check(now time.Time) error {
	switch {
	case b.Version != bundleVersion:
		return fmt.Errorf("what the control plane shares has version %d, and this keel knows version %d: use the keel "+
			"of the mesh", b.Version, bundleVersion)
	case !now.Before(b.Expires):
		return fmt.Errorf("--token: what it was for has expired at %s by this machine's clock: keel token create "+
			"--control-plane --print-join-command on a machine of the control plane makes another",
			b.Expires.UTC().Format(time.RFC3339))
	case len(b.Stores) == 0:
		return errors.New("what the control plane shares says nothing of the store: use the keel of the mesh")
	}
	for _, name := range plan.SharedFiles() {
		if len(b.Files[name]) == 0 {
			return fmt.Errorf("what the control plane shares lacks %s: use the keel of the mesh", name)
		}
	}
	return nil
}

func (k Key) cipher() (cipher.AEAD, error) {
	block, err := aes.NewCipher(k[:])
	if err != nil {
		return nil, fmt.Errorf("using a key: %w", err)
	}
	return cipher.NewGCM(block)
}

// boundTo returns the additional data with which a bundle is sealed, so that it is not accepted with another
// token.
func boundTo(token string) []byte { return []byte("keel control-plane of token " + token) }

// ControlPlaneCommand returns the command to run on a machine that is to join the control plane.
func ControlPlaneCommand(join string, key Key) string {
	return fmt.Sprintf("%s --control-plane %s %s", join, KeyFlag, key)
}
