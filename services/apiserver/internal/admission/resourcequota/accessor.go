package resourcequota

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/utils/lru"
)

const (
	// keep is of how many quotas what was last written or read is remembered until the informer shows it.
	keep = 1000
	// writeTimeout bounds one write, as the evaluation as a whole is bounded by the library.
	writeTimeout = 10 * time.Second
)

func newLatest() *lru.Cache { return lru.New(keep) }

// accessor reads and writes the quotas for the evaluator.
type accessor struct {
	client kubernetes.Interface
	lister corelisters.ResourceQuotaLister
	// latest has what the informer may not show yet, by namespace and name.
	latest *lru.Cache
}

// any reports whether the namespace has a quota.
func (a *accessor) any(namespace string) (bool, error) {
	quotas, err := a.lister.ResourceQuotas(namespace).List(labels.Everything())
	if err != nil {
		return false, apierrors.NewInternalError(fmt.Errorf("listing the quotas: %w", err))
	}
	return len(quotas) > 0, nil
}

// GetQuotas implements QuotaAccessor: the quotas of a namespace by name, as late as this server knows them.
func (a *accessor) GetQuotas(namespace string) ([]corev1.ResourceQuota, error) {
	listed, err := a.lister.ResourceQuotas(namespace).List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("listing the quotas: %w", err)
	}
	slices.SortFunc(listed, func(x, y *corev1.ResourceQuota) int { return strings.Compare(x.Name, y.Name) })
	quotas := make([]corev1.ResourceQuota, 0, len(listed))
	for _, q := range listed {
		quotas = append(quotas, *a.later(q))
	}
	return quotas, nil
}

// later returns what is known of a quota that is later than what the informer shows.
func (a *accessor) later(shown *corev1.ResourceQuota) *corev1.ResourceQuota {
	key := keyOf(shown)
	known, ok := a.latest.Get(key)
	if !ok {
		return shown
	}
	if latest := known.(*corev1.ResourceQuota); (storage.APIObjectVersioner{}).CompareResourceVersion(latest,
		shown) > 0 {
		return latest
	}
	a.latest.Remove(key)
	return shown
}

// UpdateQuotaStatus implements QuotaAccessor. After a conflict GetQuotas returns the quota as it is stored, so that the
// next try is made against that. A quota that is gone bounds nothing.
func (a *accessor) UpdateQuotaStatus(next *corev1.ResourceQuota) error {
	ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
	defer cancel()
	quotas := a.client.CoreV1().ResourceQuotas(next.Namespace)
	written, err := quotas.UpdateStatus(ctx, next, metav1.UpdateOptions{})
	switch {
	case err == nil:
		a.latest.Add(keyOf(written), written)
		return nil
	case apierrors.IsNotFound(err):
		return nil
	case !apierrors.IsConflict(err):
		return fmt.Errorf("charging the quota %s: %w", next.Name, err)
	}
	stored, readErr := quotas.Get(ctx, next.Name, metav1.GetOptions{})
	if readErr != nil {
		return fmt.Errorf("reading the quota %s again: %w", next.Name, readErr)
	}
	a.latest.Add(keyOf(stored), stored)
	return err
}

func keyOf(q *corev1.ResourceQuota) string { return q.Namespace + "/" + q.Name }
