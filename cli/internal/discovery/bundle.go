package discovery

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BundleName returns the name of the Secret in kube-system that holds what the control plane shares with the
// holder of a token; BundleKey is the key in it.
func BundleName(token string) string { return "keel-control-plane-" + token }

// BundleKey is the key of the Secret's data.
const BundleKey = "sealed"

// Bundle fetches what the control plane shares, still sealed for the token.
func (m *Mesh) Bundle(ctx context.Context, token Token) ([]byte, error) {
	secret, err := m.client.CoreV1().Secrets(metav1.NamespaceSystem).Get(ctx, BundleName(token.ID), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		return nil, fmt.Errorf("--token: token %s is not for the control plane, or another machine has joined by it: "+
			"keel token create --control-plane --print-join-command on a machine of the control plane makes one",
			token.ID)
	case err != nil:
		return nil, m.refusal(token, err)
	}
	return secret.Data[BundleKey], nil
}
