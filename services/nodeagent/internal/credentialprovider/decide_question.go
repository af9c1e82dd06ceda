package credentialprovider

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"
	kubeletv1 "k8s.io/kubelet/config/v1"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	credentialproviderv1 "k8s.io/kubelet/pkg/apis/credentialprovider/v1"
)

// question is what distinguishes one request to a plugin from another.
type question struct {
	image, registry string
	// holder is whose answers are kept together: empty for the node; else a service account with its annotations, and
	// with the token if the answer holds only for that.
	holder string
	// token is a hash of the token in the request; empty without one.
	token string
}

// key is where an answer is kept.
type key struct {
	provider string
	kind     credentialproviderv1.PluginCacheKeyType
	of       string
	holder   string
}

// at returns where an answer to the question is kept if it is of the kind.
func (q question) at(provider string, kind credentialproviderv1.PluginCacheKeyType) key {
	k := key{provider: provider, kind: kind, holder: q.holder}
	switch kind {
	case credentialproviderv1.ImagePluginCacheKeyType:
		k.of = q.image
	case credentialproviderv1.RegistryPluginCacheKeyType:
		k.of = q.registry
	}
	return k
}

// kinds are the kinds of answers, the most specific first.
var kinds = []credentialproviderv1.PluginCacheKeyType{credentialproviderv1.ImagePluginCacheKeyType,
	credentialproviderv1.RegistryPluginCacheKeyType, credentialproviderv1.GlobalPluginCacheKeyType}

// ask returns the question for an image. account is nil for a Pod without a service account, and for a provider that
// is given none.
func ask(image reference.Named, wants *kubeletv1.ServiceAccountTokenAttributes, account *corev1.ServiceAccount,
	token string) question {
	q := question{image: image.Name(), registry: reference.Domain(image)}
	if wants == nil || account == nil {
		return q
	}
	parts := []string{account.Namespace, account.Name, string(account.UID)}
	passed := annotationsFor(wants, account)
	for _, name := range slices.Sorted(maps.Keys(passed)) {
		parts = append(parts, name, passed[name])
	}
	q.token = hashed(token)
	if wants.CacheType == kubeletv1.TokenServiceAccountTokenCacheType {
		parts = append(parts, token)
	}
	q.holder = hashed(parts...)
	return q
}

// hashed returns a hash of texts that no others have.
func hashed(parts ...string) string {
	sum := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(sum, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// annotationsFor returns the account's annotations that the provider is given.
func annotationsFor(wants *kubeletv1.ServiceAccountTokenAttributes, account *corev1.ServiceAccount) map[string]string {
	passed := map[string]string{}
	for _, name := range slices.Concat(wants.RequiredServiceAccountAnnotationKeys,
		wants.OptionalServiceAccountAnnotationKeys) {
		if value, ok := account.Annotations[name]; ok {
			passed[name] = value
		}
	}
	return passed
}

// checkAccount returns an error if the account lacks an annotation that the provider requires.
func checkAccount(wants *kubeletv1.ServiceAccountTokenAttributes, account *corev1.ServiceAccount) error {
	for _, name := range wants.RequiredServiceAccountAnnotationKeys {
		if _, ok := account.Annotations[name]; !ok {
			return fmt.Errorf("requires the annotation %q, which the service account %s/%s lacks", name,
				account.Namespace, account.Name)
		}
	}
	return nil
}

// recorded returns how records name an account; the zero value stands for Pods without one.
func recorded(account *corev1.ServiceAccount) *kubeletv1beta1.ImagePullServiceAccount {
	if account == nil {
		return &kubeletv1beta1.ImagePullServiceAccount{}
	}
	return &kubeletv1beta1.ImagePullServiceAccount{UID: string(account.UID), Namespace: account.Namespace,
		Name: account.Name}
}
