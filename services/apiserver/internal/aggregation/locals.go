package aggregation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	apiregistrationclient "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset/typed/apiregistration/v1"

	"keelson.dev/kit/contained"
	"keelson.dev/kit/lanes"
	"keelson.dev/kit/wakeup"
)

const (
	// together is how long changes are waited for that come with one.
	together = 50 * time.Millisecond
	// lookInterval is how often all APIServices are looked at.
	lookInterval = time.Minute
	// keeping is what breaks off where that does.
	keeping = "keeping the APIServices of what is not handed on"
)

// Locals keeps the APIServices of the versions that are not handed on: nothing here goes by them, but clients look for
// them.
type Locals struct {
	APIServices apiregistrationclient.APIServiceInterface
	// Stored are the APIServices that there are, Defined the versions of each group that CustomResourceDefinitions
	// have, Served those that the apiserver serves itself. What they return is not changed.
	Stored  func() []*apiregistration.APIService
	Defined func() map[string][]string
	Served  map[string][]string
	// Read says of each of what Stored and Defined go by whether it has been read.
	Read []cache.InformerSynced
	Log  *zap.Logger

	changed wakeup.Signal
	known   map[string]bool
}

// NewLocals returns Locals that do nothing before Run.
func NewLocals(l Locals) *Locals {
	l.changed = wakeup.New()
	return &l
}

// Changed says that a definition or an APIService has changed.
func (l *Locals) Changed() {
	l.changed.Send()
}

// Run keeps the APIServices until ctx ends.
func (l *Locals) Run(ctx context.Context) {
	if !cache.WaitForCacheSync(ctx.Done(), l.Read...) {
		return
	}
	starting, due := true, time.Now()
	for ctx.Err() == nil {
		whole := !time.Now().Before(due)
		var err error
		if broken := contained.Do(keeping, func() { err = l.keep(ctx, starting, whole) }); broken != nil {
			err = broken
		}
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			l.Log.Warn(keeping, zap.Error(err))
			due = time.Now().Add(wait.Jitter(retryLast, 0.1))
		case whole:
			starting, due = false, time.Now().Add(wait.Jitter(lookInterval, 0.1))
		}
		l.await(ctx, time.Until(due))
	}
}

// await waits for a change and those that come with it, at most so long.
func (l *Locals) await(ctx context.Context, pause time.Duration) {
	due := time.NewTimer(pause)
	defer due.Stop()
	select {
	case <-ctx.Done():
		return
	case <-due.C:
		return
	case <-l.changed:
	}
	select {
	case <-ctx.Done():
	case <-time.After(together):
	}
}

// keep writes what is to be written now.
func (l *Locals) keep(ctx context.Context, starting, whole bool) error {
	now := Local{Wanted: wantedLocal(l.Served, l.Defined()), Stored: l.Stored(), Known: l.known, Starting: starting,
		Whole: whole, Now: time.Now()}
	writes := decideLocals(now)
	l.known = decideKnown(now)
	return errors.Join(
		each(writes.Create, func(s *apiregistration.APIService) error {
			_, err := l.APIServices.Create(ctx, s, metav1.CreateOptions{})
			return err
		}),
		each(writes.Update, func(s *apiregistration.APIService) error {
			_, err := l.APIServices.Update(ctx, s, metav1.UpdateOptions{})
			return err
		}),
		each(writes.Delete, func(s *apiregistration.APIService) error {
			return l.APIServices.Delete(ctx, s.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{
				UID: &s.UID, ResourceVersion: &s.ResourceVersion}})
		}),
	)
}

// each writes some APIServices, at most so many at a time as servers are asked. That another one was faster is no
// error: its write is a change, which is looked at.
func each(services []*apiregistration.APIService, write func(*apiregistration.APIService) error) error {
	return lanes.Each(workers, services, func(s *apiregistration.APIService) error {
		err := write(s)
		if err != nil && !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		return nil
	})
}
