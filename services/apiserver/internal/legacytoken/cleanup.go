package legacytoken

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"keelson.dev/kit/failpoint"
	"keelson.dev/services/apiserver/internal/authn/satoken"
)

// CleanUp looks once for tokens that were not used for long. The caches must have been read. It goes on after an error.
func (k *Keeper) CleanUp(ctx context.Context) error {
	tracking, err := k.Client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, TrackingName, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading the ConfigMap %s: %w", TrackingName, err)
	}
	recorded, err := recordedSince(tracking.Data)
	if err != nil {
		return fmt.Errorf("reading the ConfigMap %s: %w", TrackingName, err)
	}
	use := Use{Recorded: recorded, Period: k.CleanUpPeriod, Now: k.Now()}
	used := map[string]sets.Set[string]{}
	var errs []error
	for _, object := range k.secrets.GetIndexer().List() {
		use.Secret = object.(*corev1.Secret)
		use.Account, err = cached[corev1.ServiceAccount](k.Accounts, use.Secret.Namespace,
			use.Secret.Annotations[corev1.ServiceAccountNameKey])
		if verdict := DecideUnused(use); err == nil && verdict != Keep {
			err = k.conclude(ctx, use, verdict, used)
		}
		// A client that has written it may also use it.
		if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// conclude carries out a verdict, unless a Pod uses the Secret. used has the Secrets that Pods use, by namespace.
func (k *Keeper) conclude(ctx context.Context, use Use, verdict Verdict, used map[string]sets.Set[string]) error {
	namespace := use.Secret.Namespace
	if used[namespace] == nil {
		pods, err := k.Client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("listing the Pods of %s: %w", namespace, err)
		}
		used[namespace] = usedBy(pods.Items)
	}
	switch {
	case used[namespace].Has(use.Secret.Name):
		return nil
	case verdict == Remove:
		return k.delete(ctx, use.Secret)
	}
	return failpoint.Around("apiserver/legacytoken.mark", func() error {
		return label(ctx, k.Client, use.Secret, satoken.InvalidSinceLabel, satoken.Date(use.Now),
			use.Secret.ResourceVersion)
	})
}
