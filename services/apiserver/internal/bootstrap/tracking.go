package bootstrap

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/services/apiserver/internal/legacytoken"
)

// ensureTracking says in a ConfigMap since which day the use of the tokens in Secrets is recorded. A day that is there
// stays.
func (b *Bootstrapper) ensureTracking(ctx context.Context) error {
	client := b.Client.CoreV1().ConfigMaps(metav1.NamespaceSystem)
	have, err := client.Get(ctx, legacytoken.TrackingName, metav1.GetOptions{})
	missing := apierrors.IsNotFound(err)
	if err != nil && !missing {
		return describe("ConfigMap", legacytoken.TrackingName, err)
	}
	data := legacytoken.Tracking(have.Data, time.Now())
	switch {
	case data == nil:
		return nil
	case missing:
		_, err = client.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: legacytoken.TrackingName},
			Data: data}, metav1.CreateOptions{})
	default:
		changed := have.DeepCopy()
		changed.Data = data
		_, err = client.Update(ctx, changed, metav1.UpdateOptions{})
	}
	return describe("ConfigMap", legacytoken.TrackingName, err)
}
