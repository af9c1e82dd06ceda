// Package controller runs a service's controllers: one cache for all, a Lease and a field manager for each. A
// controller says what it is in a Registration; winning its Lease builds and starts it, losing the Lease ends it, and
// only it.
package controller

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"keelson.dev/kit/election"
	"keelson.dev/kit/events"
	"keelson.dev/kit/introspect"
)

// syncedWait is how long Synced looks; the cache offers no plain question.
const syncedWait = 50 * time.Millisecond

// connectPause is the time between two tries to reach the apiserver.
const connectPause = time.Second

// Runnable works until ctx ends. controller-runtime's controllers are Runnables.
type Runnable interface {
	Start(ctx context.Context) error
}

// Registration describes one controller.
type Registration struct {
	// Name is its folder, metric label, field manager and the second half of its Lease's name.
	Name string
	// EventSource is what users see as the origin of its Events; empty means Name.
	EventSource string
	// Rules are all that it reads and writes; the service's ClusterRole must grant them.
	Rules []rbacv1.PolicyRule
	// Index adds field indexes to the cache before it starts; nil adds none. It runs once per process.
	Index func(ctx context.Context, indexer client.FieldIndexer) error
	// Explains are the kinds of objects that the controller explains, for example "Deployment": the first by
	// Setup.Explain, the others by Setup.ExplainKind. Several may explain one kind.
	Explains []string
	// Setup builds the controller again each time its Lease is won.
	Setup func(s *Setup) (Runnable, error)
}

// Setup is what a controller is built from; Build puts it together. Client reads from the cache (never change what it
// returns) and writes directly; Live reads from the server. Client, and what is built from Config, write only with
// contexts that stem from the Runnable's, and only while the Lease holds.
type Setup struct {
	Name     string // the controller's
	Client   client.Client
	Live     client.Reader
	Cache    cache.Cache
	Config   *rest.Config
	Scheme   *runtime.Scheme
	Recorder *events.Recorder
	Log      *zap.Logger

	state    *introspect.State
	explains []string
	explain  func(kind string, e introspect.Explainer)
	wrong    error // the first that Check got
}

// Check takes the error of a part that is being set up, or nil; Builder.Runnable returns the first.
func (s *Setup) Check(err error) {
	if s.wrong == nil {
		s.wrong = err
	}
}

// Failed logs an error that the controller survives and shows it to introspection.
func (s *Setup) Failed(err error) {
	s.Log.Error("failed", zap.Error(err))
	s.state.Failed(s.Name, err)
}

// AddQueue shows a queue of the controller's own to introspection.
func (s *Setup) AddQueue(depth introspect.Depth) {
	s.state.AddQueue(s.Name, depth)
}

// Options say how to run a service's controllers.
type Options struct {
	// Service is the first half of the Leases' names.
	Service string
	// Config is the connection, as client.ForDaemon makes it. The controllers write over a fenced copy
	// (election.Fence).
	Config *rest.Config
	// Scheme knows every type that the controllers use.
	Scheme *runtime.Scheme
	// Cache may narrow what is cached, by object; the zero value caches whole objects without managed fields.
	Cache cache.Options
	Log   *zap.Logger
	// State is notified of leases, queues and errors.
	State *introspect.State
	// Election says how the process stands for the Leases.
	Election election.Options
	// Controllers are all that may run here.
	Controllers []Registration
}

// Group is the running set of controllers.
type Group struct {
	options Options
	fenced  *rest.Config
	elector *election.Elector
	events  *events.Pool

	mu         sync.Mutex // guards what follows
	cluster    cluster.Cluster
	explainers map[explains]introspect.Explainer // of the controllers that lead
}

// New connects to nothing yet. It fails on options that could never work.
func New(o Options) (*Group, error) {
	ctrllog.SetLogger(newUnservedLogger(zapr.NewLogger(o.Log), time.Now, o.State.Failed))
	elector, err := election.New(o.Config, o.State, o.Election)
	if err != nil {
		return nil, err
	}
	g := &Group{options: o, fenced: election.Fence(o.Config), elector: elector,
		explainers: map[explains]introspect.Explainer{}}
	g.addExplainers()
	return g, nil
}

// Synced returns an error until the caches that are in use have been filled. It serves as readiness check.
func (g *Group) Synced() error {
	g.mu.Lock()
	c := g.cluster
	g.mu.Unlock()
	if c == nil {
		return fmt.Errorf("the apiserver was not reached yet")
	}
	ctx, cancel := context.WithTimeout(context.Background(), syncedWait)
	defer cancel()
	if !c.GetCache().WaitForCacheSync(ctx) {
		return fmt.Errorf("caches are not filled yet")
	}
	return nil
}

// Run stands for every controller's Lease and returns when ctx has ended and all controllers have stopped.
func (g *Group) Run(ctx context.Context) error {
	if !g.connect(ctx) {
		return nil
	}
	var err error
	if g.events, err = events.NewPool(g.options.Config); err != nil {
		return err
	}
	defer g.events.Stop()
	// The cache outlives the controllers that read it.
	caching, stopCache := context.WithCancel(context.WithoutCancel(ctx))
	defer stopCache()
	cacheEnded := make(chan error, 1)
	go func() { cacheEnded <- g.cluster.Start(caching) }()

	var running sync.WaitGroup
	for _, r := range g.options.Controllers {
		running.Go(func() {
			_ = g.elector.Run(ctx, g.options.Service+"."+r.Name,
				func(ctx context.Context) error { return g.lead(ctx, r) })
		})
	}
	running.Wait()
	stopCache()
	return <-cacheEnded
}

// connect builds the cache, for which the apiserver must answer, and goes on trying until it does. It returns false
// when ctx ended first.
func (g *Group) connect(ctx context.Context) bool {
	for {
		c, err := g.newCluster(ctx)
		if err == nil {
			g.mu.Lock()
			g.cluster = c
			g.mu.Unlock()
			return true
		}
		g.options.Log.Info("the apiserver is not there yet", zap.String("reason", err.Error()))
		g.options.State.Failed("connect", err)
		select {
		case <-ctx.Done():
			return false
		case <-time.After(connectPause):
		}
	}
}

func (g *Group) newCluster(ctx context.Context) (cluster.Cluster, error) {
	c, err := cluster.New(g.fenced, func(co *cluster.Options) {
		co.Scheme, co.Logger, co.Cache = g.options.Scheme, zapr.NewLogger(g.options.Log), g.options.Cache
		if co.Cache.DefaultTransform == nil {
			co.Cache.DefaultTransform = cache.TransformStripManagedFields()
		}
		// A cached object is shared and read-only: copying each on every read is what controllers spend most on.
		co.Client.Cache = &client.CacheOptions{}
		unsafe := true
		co.Cache.DefaultUnsafeDisableDeepCopy = &unsafe
	})
	if err != nil {
		return nil, fmt.Errorf("connecting the controllers: %w", err)
	}
	for _, r := range g.options.Controllers {
		if r.Index == nil {
			continue
		}
		if err := r.Index(ctx, c.GetFieldIndexer()); err != nil {
			return nil, fmt.Errorf("indexing for %s: %w", r.Name, err)
		}
	}
	return c, nil
}

// lead runs one controller for one term.
func (g *Group) lead(ctx context.Context, r Registration) error {
	if !g.cluster.GetCache().WaitForCacheSync(ctx) {
		return ctx.Err()
	}
	defer g.dropExplainers(r.Name)
	runnable, err := r.Setup(&Setup{
		Name: r.Name, Client: g.cluster.GetClient(), Live: g.cluster.GetAPIReader(), Cache: g.cluster.GetCache(),
		Config: g.fenced, Scheme: g.options.Scheme, Recorder: g.events.Recorder(g.options.Scheme,
			cmp.Or(r.EventSource, r.Name), ""),
		Log: g.options.Log.Named(r.Name), state: g.options.State, explains: r.Explains,
		explain: func(kind string, e introspect.Explainer) { g.setExplainer(explains{r.Name, kind}, e) },
	})
	if err != nil {
		return fmt.Errorf("setting up %s: %w", r.Name, err)
	}
	g.options.Log.Info("leading", zap.String("controller", r.Name))
	return runnable.Start(ctx)
}
