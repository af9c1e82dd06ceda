// Package app puts the scheduler together.
package app

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"keelson.dev/kit/client"
	"keelson.dev/kit/cork"
	"keelson.dev/kit/daemon"
	"keelson.dev/kit/election"
	"keelson.dev/kit/events"
	"keelson.dev/kit/fieldmask"
	"keelson.dev/kit/wakeup"
	"keelson.dev/services/scheduler/internal/bind"
	"keelson.dev/services/scheduler/internal/config"
	"keelson.dev/services/scheduler/internal/cycle"
	"keelson.dev/services/scheduler/internal/evict"
	"keelson.dev/services/scheduler/internal/feed"
)

// name is the daemon's, and so the first half of its Leases' names.
const name = "scheduler"

// Config is what a scheduler needs. Only REST must be set.
type Config struct {
	*daemon.Environment // may be nil
	// REST is the connection to the apiserver.
	REST *rest.Config
	// Election says how the process stands for the profiles' Leases.
	Election election.Options
	// Scheduler is the content of a KubeSchedulerConfiguration file; without profiles it is that of no file.
	Scheduler config.Config
	// Seed decides between nodes of equal score; 0 takes one from the clock.
	Seed uint64
}

// scheduler is the running parts.
type scheduler struct {
	Config
	loop    *loop
	feed    *feed.Feed
	elector *election.Elector
	terms   *bind.Terms
	// wholeNodes are the nodes as extenders get them; nil if no extender needs them.
	wholeNodes cache.SharedIndexInformer
}

// Run schedules until ctx ends and returns when everything has stopped.
func Run(ctx context.Context, c Config) error {
	c = withDefaults(c)
	var err error
	if c.REST, err = cork.Client(client.ForDaemon(c.REST, name)); err != nil {
		return fmt.Errorf("building the client: %w", err)
	}
	mask, err := fieldmask.New(scheme.Scheme, feed.Decoded()...)
	if err != nil {
		return fmt.Errorf("building the client: %w", err)
	}
	api, err := kubernetes.NewForConfig(mask.Over(election.FenceJoined(c.REST)))
	if err != nil {
		return fmt.Errorf("building the client: %w", err)
	}
	newInformer, err := mask.Informers(c.REST)
	if err != nil {
		return err
	}
	pool, err := events.NewPool(c.REST)
	if err != nil {
		return err
	}
	defer pool.Stop()
	c.Metrics.MustRegister(events.Metrics()...)
	c.Metrics.MustRegister(election.Metrics()...)
	s := &scheduler{Config: c, loop: newLoop(c, newRecorders(pool, c.Scheduler.Profiles)), terms: &bind.Terms{}}
	s.loop.binder = bind.NewBinder(bind.Directly(api.CoreV1()), api.CoreV1(), s.terms, s.loop.bound)
	s.loop.statuses = bind.NewStatuses(api.CoreV1(), s.terms, s.loop.unwritten)
	s.loop.groups = bind.NewGroupStatuses(api.SchedulingV1beta1(), s.terms, s.loop.groupUnwritten)
	s.loop.evictor = evict.New(api.CoreV1(), s.loop.statuses.Write, s.terms, s.loop.evicted)
	if err := s.extend(); err != nil {
		return err
	}
	if s.feed, err = feed.New(api, newInformer, s.loop.deliver); err != nil {
		return err
	}
	if s.elector, err = election.New(c.REST, c.State, c.Election); err != nil {
		return err
	}
	for _, unused := range c.Scheduler.Unused {
		c.Log.Warn("field of the scheduler configuration has no effect", zap.String("field", unused))
	}
	c.Ready.Add("cluster-state", func() error {
		if !s.feed.Synced() {
			return errors.New("nodes and Pods have not been read yet")
		}
		return nil
	})
	return s.run(ctx)
}

func withDefaults(c Config) Config {
	if c.Environment == nil {
		c.Environment = daemon.NewEnvironment(name)
	}
	if len(c.Scheduler.Profiles) == 0 {
		c.Scheduler = config.Default()
	}
	if c.Seed == 0 {
		c.Seed = uint64(time.Now().UnixNano())
	}
	return c
}

func newLoop(c Config, r recorders) *loop {
	return &loop{
		cycle: cycle.New(cycle.Config{Profiles: c.Scheduler.Profiles, Backoff: c.Scheduler.Backoff, Seed: c.Seed,
			Extenders: c.Scheduler.Extenders}),
		record:   r.record,
		recordAs: r.recordAs,
		log:      c.Log,
		metrics:  newMetrics(c.Metrics, c.Scheduler.Profiles),
		now:      time.Now,
		arrived:  wakeup.New(),
	}
}

// run stops in this order: first the leads, which wait for their bindings, then what they stand on.
func (s *scheduler) run(ctx context.Context) error {
	below, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var parts sync.WaitGroup
	parts.Go(func() { s.feed.Run(below) })
	if s.wholeNodes != nil {
		parts.Go(func() { s.wholeNodes.RunWithContext(below) })
	}
	parts.Go(func() { s.loop.run(below) })
	parts.Go(func() { s.loop.statuses.Run(below) })
	parts.Go(func() { s.loop.groups.Run(below) })
	parts.Go(func() { s.loop.observe(below, s.State) })

	var leads sync.WaitGroup
	errs := make([]error, len(s.Scheduler.Profiles))
	if s.feed.WaitForSync(ctx) && s.nodesSynced(ctx) {
		s.Log.Info("nodes and Pods have been read")
		for i := range s.Scheduler.Profiles {
			leads.Go(func() { errs[i] = s.campaign(ctx, s.Scheduler.Profiles[i].Name) })
		}
	}
	leads.Wait()
	stop()
	parts.Wait()
	return errors.Join(errs...)
}

// campaign decides for a profile whenever this process holds its Lease.
func (s *scheduler) campaign(ctx context.Context, profile string) error {
	role := name + "." + profile
	return s.elector.Run(ctx, role, func(ctx context.Context) error {
		s.Log.Info("leading", zap.String("profile", profile))
		s.terms.Lead(ctx, profile)
		s.loop.do(func() { s.loop.cycle.Lead(profile, true, s.loop.now()) })
		<-ctx.Done()
		// Once the loop has taken this, no further binding or eviction starts; those under way are waited for, so that
		// the next leader sees what became of them.
		if err := s.loop.ask(context.WithoutCancel(ctx),
			func() { s.loop.cycle.Lead(profile, false, s.loop.now()) }); err != nil {
			return err
		}
		s.loop.binder.Wait()
		s.loop.evictor.Wait()
		s.Log.Info("leading no longer", zap.String("profile", profile))
		return nil
	})
}
