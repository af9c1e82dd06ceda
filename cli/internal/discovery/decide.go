package discovery

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	"k8s.io/cluster-bootstrap/token/jws"
)

// Token is a bootstrap token.
type Token struct{ ID, Secret string }

var tokenForm = regexp.MustCompile(bootstrapapi.BootstrapTokenPattern)

// ParseToken parses a typed token. Its errors do not contain the text, because part of it is secret.
func ParseToken(text string) (Token, error) {
	parts := tokenForm.FindStringSubmatch(text)
	if parts == nil {
		return Token{}, errors.New("--token: a token is ID.SECRET, six and sixteen lowercase letters and digits, as " +
			"keel token create prints it")
	}
	return Token{parts[1], parts[2]}, nil
}

// String returns the token in the form in which it is typed.
func (t Token) String() string { return t.ID + "." + t.Secret }

// PinFlag is the flag for the hashes of the trusted authorities.
const PinFlag = "--discovery-token-ca-cert-hash"

var pinForm = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// ParsePins parses typed hashes of authorities, in upper or lower case.
func ParsePins(texts []string) (pins []string, err error) {
	for _, text := range texts {
		pin := strings.ToLower(text)
		if !pinForm.MatchString(pin) {
			return nil, fmt.Errorf("%s: %q must be sha256: and 64 hexadecimal digits, as keel init prints it", PinFlag,
				text)
		}
		pins = append(pins, pin)
	}
	return pins, nil
}

// PinOf returns the hash of an authority's public key, which a renewed certificate for the same key keeps.
func PinOf(authority *x509.Certificate) string {
	sum := sha256.Sum256(authority.RawSubjectPublicKeyInfo)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// errUnsigned says that cluster-info has no signature of a token, perhaps not yet.
type errUnsigned struct{ id string }

func (e errUnsigned) Error() string {
	return fmt.Sprintf("--token: the mesh knows no token %s for joining: it has expired, or was deleted, or is of "+
		"another mesh; keel token create --print-join-command on the mesh's first machine makes a new one", e.id)
}

// CheckSignature returns an error unless cluster-info is signed with the token's secret.
func CheckSignature(info map[string]string, token Token) error {
	signature, signed := info[bootstrapapi.JWSSignatureKeyPrefix+token.ID]
	switch {
	case info[bootstrapapi.KubeConfigKey] == "":
		return fmt.Errorf("the ConfigMap %s of the mesh says nothing of it: run keel init on the mesh's first machine "+
			"again", bootstrapapi.ConfigMapClusterInfo)
	case !signed:
		return errUnsigned{token.ID}
	case !jws.DetachedTokenIsValid(signature, info[bootstrapapi.KubeConfigKey], token.ID, token.Secret):
		return fmt.Errorf("--token: its secret is not the one of token %s of the mesh, or somebody in between has "+
			"changed what the mesh says: compare it with what keel token list shows there", token.ID)
	}
	return nil
}

// PinsOf returns the hashes of the authorities in a bundle.
func PinsOf(bundle []byte) (pins []string, err error) {
	for rest := bundle; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return pins, nil
		}
		authority, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("reading the mesh's authority: %w", err)
		}
		pins = append(pins, PinOf(authority))
	}
}

// CheckPins returns an error unless one of the hashes belongs to an authority in the bundle, which holds at least
// one.
func CheckPins(bundle []byte, pins []string) error {
	found, err := PinsOf(bundle)
	if err != nil {
		return err
	}
	switch {
	case len(found) == 0:
		return errors.New("the mesh names no authority: run keel init on its first machine again")
	case slices.ContainsFunc(found, func(pin string) bool { return !slices.Contains(pins, pin) }):
		return fmt.Errorf("%s: the mesh's authority is %s, not %s: either the hash is of another mesh, or somebody in "+
			"between pretends to be this one", PinFlag, strings.Join(found, " and "), strings.Join(pins, " or "))
	}
	return nil
}

// maxSkew is how much clocks may differ: certificates are valid from this long before they are signed.
const maxSkew = 5 * time.Minute

// CheckClock returns an error unless this machine's clock is close enough to the apiserver's.
func CheckClock(server, own time.Time) error {
	ahead, word := own.Sub(server), "ahead of"
	if ahead < 0 {
		ahead, word = -ahead, "behind"
	}
	if ahead <= maxSkew {
		return nil
	}
	return fmt.Errorf("this machine's clock is %v %s the apiserver's, which is at most to be %v away: set the clocks",
		ahead.Round(time.Second), word, maxSkew)
}
