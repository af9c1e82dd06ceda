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

	"keelson.dev/services/apiserver/internal/clusterip"
	"keelson.dev/services/apiserver/internal/registry/rest"
)

// auditInterval is how old the last audit may be when something is allocated.
const auditInterval = time.Minute

// audits compares what is taken with the stored Services: before something is taken at the first write after a start,
// so that nothing in use is given out twice, then at writes an interval apart, and when the server says so.
type audits struct {
	services *rest.Storage
	ranges   *ranges
	tell     func(clusterip.Finding)
	now      func() time.Time

	mu   sync.Mutex
	last time.Time // guarded by mu
}

func newAudits(services *rest.Storage, r *ranges, tell func(clusterip.Finding)) *audits {
	return &audits{services: services, ranges: r, tell: tell, now: time.Now}
}

// ensure audits if the last audit is too old. Concurrent writes wait for the one that does.
func (a *audits) ensure(ctx context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.last.IsZero() && a.now().Sub(a.last) < auditInterval {
		return nil
	}
	return a.audit(ctx)
}

// run audits now.
func (a *audits) run(ctx context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.audit(ctx)
}

func (a *audits) audit(ctx context.Context) error {
	if err := a.repairIPs(ctx); err != nil {
		return err
	}
	used := func(ctx context.Context) (map[int]bool, error) {
		services, err := a.list(ctx)
		inUse := map[int]bool{}
		for i := range services {
			for _, offset := range a.ranges.offsets(nodePorts(&services[i].Spec)) {
				inUse[offset] = true
			}
		}
		return inUse, err
	}
	if err := a.ranges.ports.Audit(ctx, used); err != nil {
		return err
	}
	a.last = a.now()
	return nil
}

// repairIPs reads the addresses before the Services: whatever Service comes in between has made its own.
func (a *audits) repairIPs(ctx context.Context) error {
	state := clusterip.State{Now: a.now()}
	var err error
	if state.Addresses, err = a.ranges.ips.Addresses(ctx); err != nil {
		return err
	}
	if state.Services, err = a.list(ctx); err != nil {
		return err
	}
	if state.Ranges, err = a.ranges.ips.Ranges(ctx); err != nil {
		return err
	}
	repair := clusterip.DecideRepair(state)
	if err := a.ranges.ips.Apply(ctx, repair); err != nil {
		return err
	}
	if a.tell != nil {
		for _, finding := range repair.Tell {
			a.tell(finding)
		}
	}
	return nil
}

func (a *audits) list(ctx context.Context) ([]corev1.Service, error) {
	everywhere := genericapirequest.WithNamespace(ctx, metav1.NamespaceAll)
	list, err := a.services.List(everywhere, &internalversion.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing the Services: %w", err)
	}
	return list.(*corev1.ServiceList).Items, nil
}

// Repair brings what Services have and what is taken together again.
func (s *storage) Repair(ctx context.Context) error { return s.audits.run(ctx) }
