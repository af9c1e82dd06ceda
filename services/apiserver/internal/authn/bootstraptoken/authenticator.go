package bootstraptoken

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	bootstraptokens "k8s.io/cluster-bootstrap/util/tokens"
)

// Authenticator believes bootstrap tokens.
type Authenticator struct {
	// Secret reads a Secret, which it must not change.
	Secret func(ctx context.Context, namespace, name string) (*corev1.Secret, error)
	Now    func() time.Time
	// Log is told why a token that there is was not believed; its holder is not.
	Log *zap.Logger
}

var _ authenticator.Token = &Authenticator{}

// AuthenticateToken implements authenticator.Token. What is no bootstrap token, or not believed, may be another one's.
func (a *Authenticator) AuthenticateToken(ctx context.Context, token string) (*authenticator.Response, bool, error) {
	id, secret, err := bootstraptokens.ParseToken(token)
	if err != nil {
		return nil, false, nil //nolint:nilerr // it is a token of another form
	}
	of, err := a.Secret(ctx, metav1.NamespaceSystem, bootstrapapi.BootstrapTokenSecretPrefix+id)
	switch {
	case apierrors.IsNotFound(err):
		return nil, false, nil
	case err != nil:
		return nil, false, fmt.Errorf("reading the bootstrap token %s: %w", id, err)
	}
	who, err := whose(id, secret, of, a.Now())
	if err != nil {
		a.Log.Info("a bootstrap token is not believed", zap.String("id", id), zap.String("reason", err.Error()))
		return nil, false, nil
	}
	return &authenticator.Response{User: who}, true, nil
}
