// Package csiplugin maintains the CSI drivers of this node. A driver puts a unix socket into the folder of
// registrations (pluginregistration.v1); while that exists, the driver counts as registered. Plugins of other types
// that register in the same folder are passed to their Takers.
//
// A driver may be hostile: what it puts there is ignored unless it is a socket, no link is followed, every call is
// bounded in time and size, and each driver is called in a goroutine of its own.
package csiplugin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"keelson.dev/kit/backoff"
	"keelson.dev/kit/wakeup"
	"keelson.dev/services/nodeagent/internal/plainfile"
)

// ErrNotRegistered is wrapped by the error about a driver that has not registered, or no longer is.
var ErrNotRegistered = errors.New("it is not registered at this node")

// again is the back-off between attempts to register a driver.
var again = backoff.Policy{First: time.Second, Max: time.Minute}

// Config is what a Registry needs.
type Config struct {
	// Root is the agent's own folder, which contains the sockets of all drivers.
	Root string
	Log  *zap.Logger
	// Changed is called after a driver was added or removed. It must not block.
	Changed func()
	// CallTimeout bounds one call to a driver; the package's CallTimeout by default.
	CallTimeout time.Duration
	// Takers accept the plugins of other types, by type.
	Takers map[string]Taker
}

// CallTimeout is how long one call to a driver may take, the same as the kubelet's.
const CallTimeout = 2 * time.Minute

// Registry holds the drivers of one node. Its methods are safe for concurrent use.
type Registry struct {
	Config
	mu sync.Mutex // guards the fields below
	// plugins are the sockets in the folder, by name.
	plugins map[string]*plugin
}

// plugin is one socket in the folder of registrations.
type plugin struct {
	socket identity
	// driver is nil until it has registered. For a plugin of another type, withdraw is set instead.
	driver   *Driver
	withdraw func()
	failures int
	// nextAt is when its registration is tried next; asking means that it is being tried.
	nextAt time.Time
	asking bool
}

// identity distinguishes a socket from the one that replaced it.
type identity struct {
	inode    uint64
	modified time.Time
}

// New returns a Registry without plugins.
func New(config Config) *Registry {
	if config.CallTimeout == 0 {
		config.CallTimeout = CallTimeout
	}
	return &Registry{Config: config, plugins: map[string]*plugin{}}
}

// Dir returns the folder in which drivers register.
func (r *Registry) Dir() string { return filepath.Join(r.Root, "plugins_registry") }

// Driver returns a registered driver.
func (r *Registry) Driver(name string) (*Driver, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.plugins {
		if p.driver != nil && p.driver.Name == name {
			return p.driver, nil
		}
	}
	return nil, fmt.Errorf("CSI driver %s: %w", name, ErrNotRegistered)
}

// Identities returns the identities of the registered drivers, sorted by name.
func (r *Registry) Identities() []Identity {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []Identity
	for _, p := range r.plugins {
		if p.driver != nil {
			out = append(out, p.driver.Identity)
		}
	}
	slices.SortFunc(out, func(a, b Identity) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return out
}

// Run registers drivers until ctx ends.
func (r *Registry) Run(ctx context.Context) {
	var asking sync.WaitGroup
	defer asking.Wait()
	defer r.close()
	wake := wakeup.New()
	asking.Go(func() { watch(ctx, r.Dir(), r.Log, wake) })
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var problem string
	for {
		err := r.scan(ctx, &asking)
		if text := fmt.Sprint(err); err != nil && text != problem {
			r.Log.Warn("looking for CSI drivers failed in part", zap.Error(err))
		}
		problem = fmt.Sprint(err)
		select {
		case <-ctx.Done():
			return
		case <-wake:
		case <-tick.C:
		}
	}
}

// scan compares the known plugins with the folder, and starts the registration of those that are due.
func (r *Registry) scan(ctx context.Context, asking *sync.WaitGroup) error {
	found, err := sockets(plainfile.Root(r.Root), r.Dir())
	if found == nil && err != nil {
		return err
	}
	gone := r.forget(found)
	if gone && r.Changed != nil {
		r.Changed()
	}
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(found)) {
		p := r.plugins[name]
		if p == nil {
			p = &plugin{socket: found[name]}
			r.plugins[name] = p
		}
		if p.driver != nil || p.withdraw != nil || p.asking || now.Before(p.nextAt) {
			continue
		}
		p.asking = true
		asking.Go(func() { r.ask(ctx, name, p) })
	}
	return err
}

// forget drops the plugins whose socket was replaced or is gone, and reports whether a driver was among them.
func (r *Registry) forget(found map[string]identity) (gone bool) {
	var withdrawn []func()
	defer func() {
		for _, withdraw := range withdrawn {
			withdraw()
		}
	}()
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, p := range r.plugins {
		if socket, ok := found[name]; ok && socket == p.socket {
			continue
		}
		delete(r.plugins, name)
		if p.driver != nil {
			r.Log.Info("a CSI driver has gone", zap.String("driver", p.driver.Name))
			p.driver.conn.Close()
			gone = true
		}
		if p.withdraw != nil {
			withdrawn = append(withdrawn, p.withdraw)
		}
	}
	return gone
}

// ask has one plugin register.
func (r *Registry) ask(ctx context.Context, name string, p *plugin) {
	driver, err := r.register(ctx, filepath.Join(r.Dir(), name), p)
	r.mu.Lock()
	p.asking = false
	if err != nil {
		p.failures++
		p.nextAt = time.Now().Add(again.Delay(p.failures))
	}
	r.mu.Unlock()
	switch {
	case err != nil && ctx.Err() == nil:
		r.Log.Warn("a plugin cannot register", zap.String("socket", name), zap.Error(err))
	case driver != nil:
		r.Log.Info("a CSI driver has registered", zap.String("driver", driver.Name),
			zap.String("nodeID", driver.NodeID))
		if r.Changed != nil {
			r.Changed()
		}
	}
}

// admit adds a driver, unless its socket disappeared meanwhile or the name is taken.
func (r *Registry) admit(name string, p *plugin, driver *Driver) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for other, q := range r.plugins {
		if q != p && q.driver != nil && q.driver.Name == driver.Name {
			return fmt.Errorf("CSI driver %s has registered by the socket %s already: that must go first", driver.Name,
				other)
		}
	}
	if r.plugins[name] != p {
		return fs.ErrNotExist
	}
	p.driver, p.failures = driver, 0
	return nil
}

func (r *Registry) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.plugins {
		if p.driver != nil {
			p.driver.conn.Close()
		}
	}
}
