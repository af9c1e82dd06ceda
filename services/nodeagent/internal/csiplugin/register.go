package csiplugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"time"

	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"keelson.dev/kit/failpoint"
	"keelson.dev/services/nodeagent/internal/plainfile"
	"keelson.dev/services/nodeagent/internal/pluginsocket"
)

// handshakeTimeout bounds each call of a registration.
const handshakeTimeout = 10 * time.Second

// Taker accepts the plugins of one type other than CSIPlugin.
type Taker interface {
	// TakeIn accepts a plugin that serves at a socket; withdraw is called when its registration is gone.
	TakeIn(ctx context.Context, info *registration.PluginInfo, endpoint string) (withdraw func(), err error)
}

// register asks the plugin at a socket for its identity, accepts it and notifies it of that, or of the reason
// against it. The driver is nil if the plugin is of another type.
func (r *Registry) register(ctx context.Context, path string, p *plugin) (*Driver, error) {
	conn, err := pluginsocket.Connect(plainfile.Root(r.Root), path)
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	defer conn.Close()
	plugin := registration.NewRegistrationClient(conn)
	asking, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	info, err := plugin.GetInfo(asking, &registration.InfoRequest{})
	if err != nil {
		return nil, fmt.Errorf("GetInfo: %s", pluginsocket.Clip(err.Error()))
	}
	var driver *Driver
	if taker := r.Takers[info.GetType()]; taker != nil {
		err = r.hand(ctx, path, p, info, taker)
	} else if driver, err = r.meet(ctx, path, info); err == nil {
		if err = r.admit(filepath.Base(path), p, driver); err != nil {
			driver.conn.Close()
		}
	}
	answer := &registration.RegistrationStatus{PluginRegistered: err == nil}
	if err != nil {
		answer.Error = err.Error()
	}
	telling, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	tellErr := failpoint.Around("nodeagent/csi.register", func() error {
		_, err := plugin.NotifyRegistrationStatus(telling, answer)
		return err
	})
	if err == nil && tellErr != nil {
		r.withdraw(p)
		return nil, fmt.Errorf("NotifyRegistrationStatus: %s", pluginsocket.Clip(tellErr.Error()))
	}
	return driver, err
}

// hand passes a plugin to the Taker of its type, unless its socket disappears meanwhile.
func (r *Registry) hand(ctx context.Context, path string, p *plugin, info *registration.PluginInfo, to Taker) error {
	withdraw, err := to.TakeIn(ctx, info, cmp.Or(info.GetEndpoint(), path))
	if err != nil {
		return err
	}
	r.mu.Lock()
	there := r.plugins[filepath.Base(path)] == p
	if there {
		p.withdraw, p.failures = withdraw, 0
	}
	r.mu.Unlock()
	if !there {
		withdraw()
		return fs.ErrNotExist
	}
	return nil
}

// meet connects to the driver of a plugin.
func (r *Registry) meet(ctx context.Context, path string, info *registration.PluginInfo) (*Driver, error) {
	if err := checkInfo(info, slices.Sorted(maps.Keys(r.Takers))...); err != nil {
		return nil, err
	}
	endpoint := cmp.Or(info.GetEndpoint(), path)
	socket, err := plainfile.Root(r.Root).Socket(endpoint)
	if err != nil {
		return nil, fmt.Errorf("the endpoint of driver %s must be the path of a unix socket below %s: %s",
			info.GetName(), r.Root, pluginsocket.Clip(err.Error()))
	}
	socket.Close()
	conn, err := pluginsocket.Connect(plainfile.Root(r.Root), endpoint)
	if err != nil {
		return nil, fmt.Errorf("connecting to driver %s: %w", info.GetName(), err)
	}
	driver, err := greet(ctx, info.GetName(), conn, min(r.CallTimeout, handshakeTimeout))
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	driver.timeout = r.CallTimeout
	return driver, nil
}

// withdraw removes a plugin that could not be notified of its registration.
func (r *Registry) withdraw(p *plugin) {
	r.mu.Lock()
	driver, withdraw := p.driver, p.withdraw
	p.driver, p.withdraw = nil, nil
	r.mu.Unlock()
	if driver != nil {
		driver.conn.Close()
	}
	if withdraw != nil {
		withdraw()
	}
}
