package invite

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	bootstraputil "k8s.io/cluster-bootstrap/token/util"

	"keelson.dev/cli/internal/discovery"
	"keelson.dev/cli/internal/manifest"
)

// CreateToken creates a token with this lifetime; 0 means for ever.
func CreateToken(ctx context.Context, client kubernetes.Interface, life time.Duration, description string,
) (discovery.Token, error) {
	text, err := bootstraputil.GenerateBootstrapToken()
	if err != nil {
		return discovery.Token{}, fmt.Errorf("making a token: %w", err)
	}
	token, err := discovery.ParseToken(text)
	if err != nil {
		return token, err
	}
	_, err = client.CoreV1().Secrets(metav1.NamespaceSystem).Create(ctx, secretOf(token, life, description, time.Now()),
		metav1.CreateOptions{FieldManager: manifest.FieldManager})
	if err != nil {
		return token, fmt.Errorf("making a token: %w", err)
	}
	return token, nil
}

// Tokens lists all bootstrap tokens of the mesh, including those that keel has not made.
func Tokens(ctx context.Context, client kubernetes.Interface) ([]Listed, error) {
	secrets, err := client.CoreV1().Secrets(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("type", string(bootstrapapi.SecretTypeBootstrapToken)).String()})
	if err != nil {
		return nil, fmt.Errorf("listing the tokens: %w", err)
	}
	return list(secrets.Items, time.Now()), nil
}

// DeleteToken deletes the token with this ID.
func DeleteToken(ctx context.Context, client kubernetes.Interface, id string) error {
	err := client.CoreV1().Secrets(metav1.NamespaceSystem).Delete(ctx, bootstraputil.BootstrapTokenSecretName(id),
		metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("there is no token %s: keel token list shows them", id)
	}
	if err != nil {
		return fmt.Errorf("deleting the token %s: %w", id, err)
	}
	return nil
}

// ParseTokenID reads a token or its ID.
func ParseTokenID(text string) (string, error) {
	if token, err := discovery.ParseToken(text); err == nil {
		return token.ID, nil
	}
	if !bootstraputil.IsValidBootstrapTokenID(text) {
		return "", fmt.Errorf("TOKEN: neither a token nor its ID, six lowercase letters and digits")
	}
	return text, nil
}
