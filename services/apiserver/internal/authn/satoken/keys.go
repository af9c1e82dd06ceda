package satoken

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"fmt"

	"github.com/go-jose/go-jose/v4"
	"k8s.io/client-go/util/keyutil"
)

// Keys verify tokens, by key id.
type Keys map[string]crypto.PublicKey

// LoadKeys reads the public keys, or the public halves of private keys, in PEM files.
func LoadKeys(files ...string) (Keys, error) {
	keys := Keys{}
	for _, file := range files {
		publics, err := keyutil.PublicKeysFromFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading the keys in %s: %w", file, err)
		}
		for _, public := range publics {
			if err := keys.Add(public); err != nil {
				return nil, fmt.Errorf("reading the keys in %s: %w", file, err)
			}
		}
	}
	return keys, nil
}

// Add makes tokens that key's private half signed valid.
func (k Keys) Add(key crypto.PublicKey) error {
	id, err := keyID(key)
	if err != nil {
		return err
	}
	k[id] = key
	return nil
}

// JSONWebKeySet is the published form of the keys.
func (k Keys) JSONWebKeySet() (jose.JSONWebKeySet, error) {
	var set jose.JSONWebKeySet
	for id, key := range k {
		alg, err := algorithm(key)
		if err != nil {
			return jose.JSONWebKeySet{}, err
		}
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: key, KeyID: id, Algorithm: string(alg), Use: "sig"})
	}
	return set, nil
}

// keyID is derived from the key, so that servers with the same keys agree.
func keyID(key crypto.PublicKey) (string, error) {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return "", fmt.Errorf("encoding the public key: %w", err)
	}
	sum := sha256.Sum256(der)
	return base64.RawURLEncoding.EncodeToString(sum[:]), nil
}

func algorithm(key crypto.PublicKey) (jose.SignatureAlgorithm, error) {
	switch k := key.(type) {
	case *rsa.PublicKey:
		return jose.RS256, nil
	case *ecdsa.PublicKey:
		switch k.Curve {
		case elliptic.P256():
			return jose.ES256, nil
		case elliptic.P384():
			return jose.ES384, nil
		case elliptic.P521():
			return jose.ES512, nil
		}
	}
	return "", fmt.Errorf("a key of type %T cannot sign tokens, only RSA and ECDSA keys can", key)
}
