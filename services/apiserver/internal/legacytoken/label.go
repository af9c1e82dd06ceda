package legacytoken

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"keelson.dev/services/apiserver/internal/authn/satoken"
)

// recordTimeout bounds how long a request waits until the use of its token has been recorded.
const recordTimeout = 3 * time.Second

// RecordUse writes down the day on which the Secret's token was used. A failure is logged and no more: the next use
// tries again, and a Secret that has changed since or is gone needs no record.
func RecordUse(ctx context.Context, client kubernetes.Interface, log *zap.Logger, secret *corev1.Secret, day string) {
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	err := label(ctx, client, secret, satoken.LastUsedLabel, day, "")
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		log.Warn("recording the use of a token", zap.Error(err))
	}
}

// label sets a label of this very Secret, if it has the version; empty: whichever it has.
func label(ctx context.Context, client kubernetes.Interface, secret *corev1.Secret, name, value, version string) error {
	patch, err := json.Marshal(map[string]any{"metadata": metav1.ObjectMeta{UID: secret.UID, ResourceVersion: version,
		Labels: map[string]string{name: value}}})
	if err != nil {
		return fmt.Errorf("encoding a patch: %w", err)
	}
	_, err = client.CoreV1().Secrets(secret.Namespace).Patch(ctx, secret.Name, types.MergePatchType, patch,
		metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("labelling the Secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	return nil
}
