// Package bootstraptoken authenticates by bootstrap tokens: each is a Secret of kube-system, by which a machine that is
// to become a node, and has no certificate yet, asks for one.
package bootstraptoken

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	bootstrapsecrets "k8s.io/cluster-bootstrap/util/secrets"
)

// whose returns the user of the token, given the Secret of its ID, or why it has none. The Secret's own data must agree
// with the ID: its name alone authenticates no user.
func whose(id, secret string, of *corev1.Secret, now time.Time) (user.Info, error) {
	data := func(key string) string { return bootstrapsecrets.GetData(of, key) }
	switch {
	case of.Type != bootstrapapi.SecretTypeBootstrapToken:
		return nil, fmt.Errorf("it is of the type %q", of.Type)
	case of.DeletionTimestamp != nil:
		return nil, errors.New("it is being deleted")
	case subtle.ConstantTimeCompare([]byte(data(bootstrapapi.BootstrapTokenSecretKey)), []byte(secret)) != 1:
		return nil, errors.New("its secret is another one")
	case data(bootstrapapi.BootstrapTokenIDKey) != id:
		return nil, fmt.Errorf("%s is not the ID in its name", bootstrapapi.BootstrapTokenIDKey)
	case bootstrapsecrets.HasExpired(of, now):
		return nil, errors.New("it has expired")
	case data(bootstrapapi.BootstrapTokenUsageAuthentication) != "true":
		return nil, fmt.Errorf("%s is not \"true\"", bootstrapapi.BootstrapTokenUsageAuthentication)
	}
	groups, err := bootstrapsecrets.GetGroups(of)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", bootstrapapi.BootstrapTokenExtraGroupsKey, err)
	}
	return &user.DefaultInfo{Name: bootstrapapi.BootstrapUserPrefix + id, Groups: groups}, nil
}
