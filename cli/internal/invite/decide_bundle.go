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

// Bundle is what a machine has to have to be one of the control plane.
type Bundle struct {
	// Version is raised when an older keel could not follow it.
	Version int `json:"version"`
	// Expires is when nobody is to take it any more.
	Expires time.Time `json:"expires"`
	// Files are those of plan.SharedFiles.
	Files map[string][]byte `json:"files"`
	// Encryption is the configuration of what of the store is encrypted; empty without one.
	Encryption []byte `json:"encryption,omitempty"`
	// Stores are the URLs at which the store is reached that the machine gets a copy of.
	Stores []string `json:"stores"`
	// Endpoint is the HOST:PORT at which other machines reach the control plane; empty where it has none of its own.
	Endpoint string `json:"controlPlaneEndpoint,omitempty"`
}

// bundleVersion is the one that this keel writes and follows.
const bundleVersion = 1

// Lives of what joins a machine to the control plane: who has it has all of the mesh.
const (
	ControlPlaneLife    = 2 * time.Hour
	maxControlPlaneLife = 2 * time.Hour
)

// CheckControlPlaneLife says what is wrong with how long a token of the control plane is to be good.
func CheckControlPlaneLife(life time.Duration) error {
	if life < time.Second || life > maxControlPlaneLife {
		return fmt.Errorf("--ttl: %v must be between a second and %v with --control-plane: whoever has such a token "+
			"and its key has the whole mesh", life, maxControlPlaneLife)
	}
	return nil
}

// Key is by what a bundle is sealed: never stored in the mesh.
type Key [32]byte

// nonce stands before what is sealed with it.
type nonce [12]byte

// String is the key as it is typed.
func (k Key) String() string { return hex.EncodeToString(k[:]) }

// KeyFlag names it.
const KeyFlag = "--certificate-key"

var keyForm = regexp.MustCompile(`^[0-9a-f]{64}$`)

// ParseKey reads a key as it is typed. What is wrong with one is said without its words.
func ParseKey(text string) (key Key, err error) {
	if !keyForm.MatchString(text) {
		return key, fmt.Errorf("%s: a key is 64 hexadecimal digits, as keel token create --control-plane prints it",
			KeyFlag)
	}
	_, err = hex.Decode(key[:], []byte(text))
	return key, err
}

// seal encrypts a bundle for who has the key, and binds it to the token that it goes with. No nonce comes twice.
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

// errWrongKey is all that can be said of a bundle that the key does not open.
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

// boundTo is what a bundle is sealed with beside its content, so that it passes for no other token's.
func boundTo(token string) []byte { return []byte("keel control-plane of token " + token) }

// ControlPlaneCommand is what is typed on a machine that is to join the control plane.
func ControlPlaneCommand(join string, key Key) string {
	return fmt.Sprintf("%s --control-plane %s %s", join, KeyFlag, key)
}
