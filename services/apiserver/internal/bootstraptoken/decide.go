// Package bootstraptoken keeps what belongs to bootstrap tokens: those that have expired are deleted, and the ConfigMap
// cluster-info of kube-public, by which a machine that has nothing but a token gets to know the mesh, is signed with
// each token that is for it.
//
// It is a part of the apiserver because it reads what is in Secrets: see docs/decisions/0021. Every apiserver runs it;
// each write is one object at the version that was read.
package bootstraptoken

import (
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	bootstrapsecrets "k8s.io/cluster-bootstrap/util/secrets"
)

// Expired are the tokens that have had their time.
func Expired(tokens []corev1.Secret, now time.Time) []*corev1.Secret {
	var expired []*corev1.Secret
	for i := range tokens {
		if isToken(&tokens[i]) && bootstrapsecrets.HasExpired(&tokens[i], now) {
			expired = append(expired, &tokens[i])
		}
	}
	return expired
}

func isToken(s *corev1.Secret) bool {
	return s.Type == bootstrapapi.SecretTypeBootstrapToken && s.DeletionTimestamp == nil
}

// Signed is what cluster-info has to hold: what it does, with the signatures of the tokens that are for that, and of no
// others. sign is jws.ComputeDetachedSignature.
func Signed(info map[string]string, tokens []corev1.Secret, now time.Time,
	sign func(content, id, secret string) (string, error)) (map[string]string, error) {
	signed := maps.Clone(info)
	maps.DeleteFunc(signed, func(key, _ string) bool {
		return strings.HasPrefix(key, bootstrapapi.JWSSignatureKeyPrefix)
	})
	content, has := info[bootstrapapi.KubeConfigKey]
	if !has {
		return signed, nil
	}
	for i := range tokens {
		id, secret, ok := signs(&tokens[i], now)
		if !ok {
			continue
		}
		signature, err := sign(content, id, secret)
		if err != nil {
			return nil, err
		}
		signed[bootstrapapi.JWSSignatureKeyPrefix+id] = signature
	}
	return signed, nil
}

// signs says by what a token signs, if it does.
func signs(s *corev1.Secret, now time.Time) (id, secret string, ok bool) {
	id, named := bootstrapsecrets.ParseName(s.Name)
	secret = bootstrapsecrets.GetData(s, bootstrapapi.BootstrapTokenSecretKey)
	return id, secret, named && isToken(s) && secret != "" &&
		bootstrapsecrets.GetData(s, bootstrapapi.BootstrapTokenIDKey) == id &&
		bootstrapsecrets.GetData(s, bootstrapapi.BootstrapTokenUsageSigningKey) == "true" &&
		!bootstrapsecrets.HasExpired(s, now)
}
