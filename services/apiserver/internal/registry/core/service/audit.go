package service

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"

	"keelson.dev/services/apiserver/internal/registry/rest"
)

// auditInterval is how old the last audit may be when something is allocated.
const auditInterval = time.Minute

// audits compares what is taken with the stored Services before something is taken: at the first write after a start,
// so that nothing in use is given out twice, and then at writes an interval apart, so that what a crash left over is
// found.
type audits struct {
	services *rest.Storage
	ranges   *ranges
	now      func() time.Time

	mu   sync.Mutex
	last time.Time // guarded by mu
}

func newAudits(services *rest.Storage, r *ranges) *audits {
	return &audits{services: services, ranges: r, now: time.Now}
}

// ensure audits if the last audit is too old. Concurrent writes wait for the one that does.
func (a *audits) ensure(ctx context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.last.IsZero() && a.now().Sub(a.last) < auditInterval {
		return nil
	}
	if err := a.ranges.ips.Audit(ctx, a.used(func(o offsets) []int { return o.ips })); err != nil {
		return err
	}
	if err := a.ranges.ports.Audit(ctx, a.used(func(o offsets) []int { return o.ports })); err != nil {
		return err
	}
	a.last = a.now()
	return nil
}

func (a *audits) used(choose func(offsets) []int) func(context.Context) (map[int]bool, error) {
	return func(ctx context.Context) (map[int]bool, error) {
		everywhere := genericapirequest.WithNamespace(ctx, metav1.NamespaceAll)
		list, err := a.services.List(everywhere, &internalversion.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("listing the Services: %w", err)
		}
		used := map[int]bool{}
		services := list.(*corev1.ServiceList).Items
		for i := range services {
			for _, offset := range choose(held(a.ranges, &services[i])) {
				used[offset] = true
			}
		}
		return used, nil
	}
}
