// Package election lets at most one replica lead each role, by a Lease per role. Losing a role ends that role's work,
// not the process, and the process stands for it again.
package election

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/google/uuid"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"keelson.dev/kit/batch"
)

// Timing of a Lease, as planned. A standby looks every 7/8 of RetryPeriod to 2.2 times that (client-go's jitter) and
// takes over when it has seen no renewal for as long as the Lease says: a killed leader is replaced after at most
// LeaseDuration + 4.4 RetryPeriod. Where the apiserver answers slowly, a leader's Leases last up to four times as long
// and are renewed as much less often (pace).
type Timing struct {
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
}

// DefaultTiming hands a role over within 20 s after its leader was killed.
var DefaultTiming = Timing{LeaseDuration: 9 * time.Second, RenewDeadline: 6 * time.Second, RetryPeriod: 2 * time.Second}

// Namespace holds the Leases.
const Namespace = "kube-system"

// restartPause keeps a role whose work ends at once from spinning.
const restartPause = time.Second

// Observer is notified of every change; introspect.State is one. Calls come from one goroutine per role.
type Observer interface {
	Campaigning(role string)
	Leading(role, identity string)
	Lost(role string)
	Elected(role, holder string)
	Failed(role string, err error)
}

// Elector campaigns for roles with one identity.
type Elector struct {
	// Identity is unique to the process.
	Identity string
	Timing   Timing
	Options
	client   kubernetes.Interface
	observer Observer
	clock    func() time.Duration

	mu   sync.Mutex // guards what follows
	pace pace
}

// New returns an elector whose identity is the host name and a random part.
func New(config *rest.Config, observer Observer, options Options) (*Elector, error) {
	// The roles of a process renew their Leases at the same moments.
	always := func(context.Context) error { return nil }
	client, err := kubernetes.NewForConfig(batch.Over(config, always))
	if err != nil {
		return nil, fmt.Errorf("building the election client: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("naming the elector: %w", err)
	}
	e := newElector(host+"_"+uuid.NewString(), client, observer, sinceBoot)
	e.Options = options
	return e, nil
}

func newElector(identity string, client kubernetes.Interface, observer Observer, clock func() time.Duration) *Elector {
	return &Elector{Identity: identity, Timing: DefaultTiming, client: client, observer: observer, clock: clock,
		pace: pace{stretch: 1, changed: clock()}}
}

// Run stands for the role until ctx ends, and calls lead each time it is won. lead's context ends when the role is
// lost; it must return soon after, since the next campaign waits for it. When ctx ends the Lease is given up only after
// lead has returned, so that two leaders never overlap. An error of lead is reported to the observer, the role is given
// up and stood for again. Over a connection of Fence, lead writes with that context or one made of it, and with no
// other.
func (e *Elector) Run(ctx context.Context, role string, lead func(context.Context) error) error {
	c := &candidacy{identity: e.Identity, fallback: e.Fallback, begun: e.clock()}
	leads := leading.WithLabelValues(role)
	for ctx.Err() == nil {
		e.observer.Campaigning(role)
		if err := e.campaign(ctx, role, c, shown(leads, lead)); err != nil {
			e.observer.Failed(role, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(restartPause):
		}
	}
	return nil
}

// campaign waits for the role, leads once, and gives the role up.
func (e *Elector) campaign(ctx context.Context, role string, c *candidacy, lead func(context.Context) error) error {
	// Electing outlives ctx, so that the Lease is renewed while lead winds up.
	electing, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	t := &term{role: role, clock: e.clock, stop: stop, done: make(chan struct{})}
	lock := timedLock{&leaseLock{leases: e.client.CoordinationV1().Leases(Namespace), role: role,
		identity: e.Identity, fallback: e.Fallback}, e, t, c}
	if !e.awaitTurn(ctx, lock) {
		return nil
	}
	// The term ends without client-go when the Lease does: client-go gets the longest times that are possible.
	most := e.Timing.stretched(mostStretch)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, Name: role,
		LeaseDuration: most.LeaseDuration, RenewDeadline: most.RenewDeadline,
		RetryPeriod: soonest(e.Timing.RetryPeriod), // from the end of a renewal on: the next begins on time
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(held context.Context) {
				t.serve(ctx, held, func(ctx context.Context) error {
					e.observer.Leading(role, e.Identity)
					return lead(ctx)
				})
			},
			OnStoppedLeading: func() {},
			OnNewLeader:      func(holder string) { e.observer.Elected(role, holder) },
		},
	})
	if err != nil {
		return fmt.Errorf("standing for %s: %w", role, err)
	}
	defer context.AfterFunc(ctx, t.yield)()
	elector.Run(electing)
	served, err := t.end()
	if !served {
		return nil
	}
	e.observer.Lost(role)
	return errors.Join(err, e.release(lock.leaseLock))
}

// awaitTurn waits until the process may stand for the role, which a fallback may not always; it returns false when ctx
// ended first. It looks at all roles at the same moments.
func (e *Elector) awaitTurn(ctx context.Context, lock timedLock) bool {
	for holder := ""; e.Fallback && ctx.Err() == nil; {
		_, _, err := lock.look(ctx)
		switch {
		case apierrors.IsNotFound(err):
			return true
		case err != nil:
			e.observer.Failed(lock.role, fmt.Errorf("looking whether the lease is held: %w", err))
		case lock.candidacy.mayStand(lock.view(), e.stretch()):
			return true
		case lock.view().holder != holder:
			holder = lock.view().holder
			e.observer.Elected(lock.role, holder)
		}
		select {
		case <-ctx.Done():
		case <-time.After(glance - e.clock()%glance):
		}
	}
	return ctx.Err() == nil
}

// release gives the Lease up at once. client-go's own release would come before lead has returned where a renewal
// failed.
func (e *Elector) release(lock *leaseLock) error {
	ctx, cancel := context.WithTimeout(context.Background(), e.timing().RetryPeriod)
	defer cancel()
	for {
		record, _, err := lock.Get(ctx)
		if err != nil {
			return fmt.Errorf("reading the lease to give it up: %w", err)
		}
		if record.HolderIdentity != e.Identity {
			return nil
		}
		now := metav1.Now()
		err = lock.Update(ctx, resourcelock.LeaderElectionRecord{
			LeaderTransitions: record.LeaderTransitions, LeaseDurationSeconds: 1, RenewTime: now, AcquireTime: now,
		})
		switch {
		case err == nil:
			return nil
		case !apierrors.IsConflict(err): // Else a candidate has asked for it meanwhile.
			return fmt.Errorf("giving the lease up: %w", err)
		}
	}
}
