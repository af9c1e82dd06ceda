package invite

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	bootstraputil "k8s.io/cluster-bootstrap/token/util"

	"keelson.dev/cli/internal/discovery"
	"keelson.dev/cli/internal/manifest"
)

const (
	// bundleType is the type of the Secret that holds a bundle.
	bundleType = "keelson.dev/control-plane"
	// rightPrefix is the name prefix of the Role and RoleBinding that let one token read one bundle.
	rightPrefix = "keelson:control-plane-"
)

// NewKey makes a random key.
func NewKey() (key Key, err error) {
	if _, err := rand.Read(key[:]); err != nil {
		return key, fmt.Errorf("making a key: %w", err)
	}
	return key, nil
}

// Seal encrypts a bundle with the key, and binds it to its token.
func Seal(b Bundle, key Key, token string) ([]byte, error) {
	var first nonce
	if _, err := rand.Read(first[:]); err != nil {
		return nil, fmt.Errorf("sealing what the control plane shares: %w", err)
	}
	return seal(b, key, first, token)
}

// Offer creates a token with which one machine joins the control plane, and a Secret with the sealed bundle, which
// only the token may read. The token's Secret owns all of these objects: they are deleted when it expires or is
// deleted.
func Offer(ctx context.Context, client kubernetes.Interface, b Bundle, life time.Duration, description string,
) (token discovery.Token, key Key, err error) {
	if key, err = NewKey(); err != nil {
		return token, key, err
	}
	b.Expires = time.Now().Add(life)
	if token, err = CreateToken(ctx, client, life, description); err != nil {
		return token, key, err
	}
	if err = offer(ctx, client, b, token, key); err != nil {
		return token, key, fmt.Errorf("%w (token %s is left: keel token delete %[2]s)", err, token.ID)
	}
	return token, key, nil
}

func offer(ctx context.Context, client kubernetes.Interface, b Bundle, token discovery.Token, key Key) error {
	sealed, err := Seal(b, key, token.ID)
	if err != nil {
		return err
	}
	owner, err := client.CoreV1().Secrets(metav1.NamespaceSystem).Get(ctx,
		bootstraputil.BootstrapTokenSecretName(token.ID), metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading the token again: %w", err)
	}
	secret, role, binding := bundleObjects(token.ID, sealed, owner.UID)
	options := metav1.CreateOptions{FieldManager: manifest.FieldManager}
	if _, err := client.CoreV1().Secrets(secret.Namespace).Create(ctx, secret, options); err != nil {
		return fmt.Errorf("keeping what the control plane shares: %w", err)
	}
	if _, err := client.RbacV1().Roles(role.Namespace).Create(ctx, role, options); err != nil {
		return fmt.Errorf("letting the token read what the control plane shares: %w", err)
	}
	if _, err := client.RbacV1().RoleBindings(binding.Namespace).Create(ctx, binding, options); err != nil {
		return fmt.Errorf("letting the token read what the control plane shares: %w", err)
	}
	return nil
}

// bundleObjects returns the objects that hold a bundle and let its token read it.
func bundleObjects(token string, sealed []byte, owner types.UID) (*corev1.Secret, *rbacv1.Role, *rbacv1.RoleBinding) {
	of := metav1.OwnerReference{APIVersion: "v1", Kind: "Secret", Name: bootstraputil.BootstrapTokenSecretName(token),
		UID: owner}
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceSystem,
			OwnerReferences: []metav1.OwnerReference{of}}
	}
	name := discovery.BundleName(token)
	secret := &corev1.Secret{ObjectMeta: meta(name), Type: bundleType,
		Data: map[string][]byte{discovery.BundleKey: sealed}}
	role := &rbacv1.Role{ObjectMeta: meta(rightPrefix + token), Rules: []rbacv1.PolicyRule{{APIGroups: []string{""},
		Resources: []string{"secrets"}, ResourceNames: []string{name}, Verbs: []string{"get"}}}}
	binding := &rbacv1.RoleBinding{ObjectMeta: meta(rightPrefix + token),
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: rightPrefix + token},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind,
			Name: bootstrapapi.BootstrapUserPrefix + token}},
	}
	return secret, role, binding
}

// Spend deletes the bundle and the token with which a machine has joined the control plane: they are for one
// machine only.
func Spend(ctx context.Context, client kubernetes.Interface, token string) error {
	secrets := client.CoreV1().Secrets(metav1.NamespaceSystem)
	for _, name := range []string{discovery.BundleName(token), bootstraputil.BootstrapTokenSecretName(token)} {
		if err := secrets.Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("deleting what this machine has joined by: %w", err)
		}
	}
	return nil
}
