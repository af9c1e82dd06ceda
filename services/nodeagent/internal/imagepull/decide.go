package imagepull

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/distribution/reference"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
)

// Credentials are those of a pull that succeeded; the zero value is for a pull that needed none, or that used those of
// the node.
type Credentials struct {
	// Secret is the Secret that they came from.
	Secret *kubeletv1beta1.ImagePullSecret
	// Account is the service account for which a credential provider gave them. The zero account stands for Pods
	// without one.
	Account *kubeletv1beta1.ImagePullServiceAccount
}

// Shown is what a Pod can show to get an image. The functions are called only if their answers matter.
type Shown struct {
	// Secrets returns the Pod's Secrets with credentials for the image.
	Secrets func() []kubeletv1beta1.ImagePullSecret
	// Account returns the service account for which credential providers give the Pod credentials; nil for none.
	Account func() *kubeletv1beta1.ImagePullServiceAccount
}

// verifies reports whether a Pod must show credentials for an image that is on the node. name is the image's full
// name without tag or digest; pulledHere means that the agent has pulled it.
func (s *Settings) verifies(name string, pulledHere bool) bool {
	switch s.policy() {
	case kubeletv1beta1.NeverVerify:
		return false
	case kubeletv1beta1.NeverVerifyPreloadedImages:
		return pulledHere
	case kubeletv1beta1.NeverVerifyAllowlistedImages:
		return pulledHere || !slices.ContainsFunc(s.Allowlist, func(entry string) bool { return lists(entry, name) })
	}
	return true
}

// lists reports whether an entry of the allowlist matches the image.
func lists(entry, name string) bool {
	full, err := normal(entry)
	if prefix, ok := strings.CutSuffix(full, "*"); ok {
		return strings.HasPrefix(name, prefix)
	}
	return err == nil && full == name
}

// normal returns an entry of the allowlist with the image's full name: with its registry, and with library for
// names of one part on docker.io. A trailing * is kept.
func normal(entry string) (string, error) {
	name, wild := entry, ""
	if prefix, ok := strings.CutSuffix(entry, "/*"); ok {
		name, wild = prefix+"/x", "*"
	}
	ref, err := reference.ParseNormalizedNamed(name)
	if err != nil {
		return "", errors.New("must be the name of an image, or its beginning up to /*")
	}
	if !reference.IsNameOnly(ref) {
		return "", errors.New("must have neither tag nor digest")
	}
	if wild != "" {
		return strings.TrimSuffix(ref.Name(), "x") + wild, nil
	}
	return ref.Name(), nil
}

// opens reports whether one of the secrets grants access to an image that was pulled with the known credentials,
// and which. A secret does if it has the same content as one of those, or is one of those with changed content.
func opens(known kubeletv1beta1.ImagePullCredentials, secrets []kubeletv1beta1.ImagePullSecret) (
	kubeletv1beta1.ImagePullSecret, bool) {
	for _, secret := range secrets {
		if slices.ContainsFunc(known.KubernetesSecrets, func(k kubeletv1beta1.ImagePullSecret) bool {
			return sameSecret(k, secret) || k.CredentialHash != "" && k.CredentialHash == secret.CredentialHash
		}) {
			return secret, true
		}
	}
	return kubeletv1beta1.ImagePullSecret{}, false
}

func sameSecret(a, b kubeletv1beta1.ImagePullSecret) bool {
	return a.UID == b.UID && a.Namespace == b.Namespace && a.Name == b.Name
}

// mostSecrets is how many secrets, and how many accounts, a record keeps of one image; a Pod with a forgotten one pulls
// again.
const mostSecrets = 100

// with returns what is known of an image after a pull with the given credentials.
func with(known kubeletv1beta1.ImagePullCredentials, by Credentials) kubeletv1beta1.ImagePullCredentials {
	if by.Secret == nil && by.Account == nil || known.NodePodsAccessible {
		return kubeletv1beta1.ImagePullCredentials{NodePodsAccessible: true}
	}
	if by.Secret != nil {
		known.KubernetesSecrets = newest(known.KubernetesSecrets, *by.Secret, sameSecret)
	}
	if by.Account != nil {
		known.KubernetesServiceAccounts = newest(known.KubernetesServiceAccounts, *by.Account,
			func(a, b kubeletv1beta1.ImagePullServiceAccount) bool { return a == b })
	}
	return known
}

// newest returns the list with one more at its end, which takes the place of the same one, and without the oldest if
// there are too many.
func newest[T any](list []T, one T, same func(a, b T) bool) []T {
	others := slices.DeleteFunc(slices.Clone(list), func(other T) bool { return same(other, one) })
	all := append(others, one)
	return all[max(0, len(all)-mostSecrets):]
}

// added returns the record of an image after a pull of the name with the given credentials; nil stands for unknown
// ones, which grant no Pod access. old is nil if the image had no record; it is not changed.
func added(old *kubeletv1beta1.ImagePulledRecord, id, name string,
	by *Credentials) *kubeletv1beta1.ImagePulledRecord {
	record := &kubeletv1beta1.ImagePulledRecord{ImageRef: id,
		CredentialMapping: map[string]kubeletv1beta1.ImagePullCredentials{}}
	if old != nil {
		maps.Copy(record.CredentialMapping, old.CredentialMapping)
	}
	if by != nil {
		record.CredentialMapping[name] = with(record.CredentialMapping[name], *by)
	}
	return record
}

// fileOf returns the name of the file about an image, whose name may contain any character.
func fileOf(image string) string {
	sum := sha256.Sum256([]byte(image))
	return "sha256-" + hex.EncodeToString(sum[:])
}
