package deviceplugin

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"keelson.dev/services/nodeagent/internal/plainfile"
	"keelson.dev/services/nodeagent/internal/pluginsocket"
)

// callTimeout bounds each call to a plugin; followAgain is the pause before a plugin that stays registered is
// followed again after its stream broke.
const (
	callTimeout = 30 * time.Second
	followAgain = time.Second
)

// session is a plugin that serves.
type session struct {
	name    corev1.ResourceName
	conn    *grpc.ClientConn
	client  api.DevicePluginClient
	options *api.DevicePluginOptions
	// stays means that the plugin is registered until it is withdrawn; others have to register again when their stream
	// breaks.
	stays bool
	ctx   context.Context
	end   context.CancelFunc
}

// begin accepts the plugin that serves a resource at a socket, replacing an earlier one. Without options it asks
// the plugin for them.
func (m *Manager) begin(ctx context.Context, name corev1.ResourceName, path string, options *api.DevicePluginOptions,
	stays bool) (*session, error) {
	root := plainfile.Root(m.Root)
	socket, err := root.Socket(path)
	if err != nil {
		return nil, fmt.Errorf("the endpoint of the plugin of %s must be the path of a unix socket below %s: %s", name,
			m.Root, pluginsocket.Clip(err.Error()))
	}
	socket.Close()
	conn, err := pluginsocket.Connect(root, path)
	if err != nil {
		return nil, fmt.Errorf("connecting to the plugin of %s: %w", name, err)
	}
	s := &session{name: name, conn: conn, client: api.NewDevicePluginClient(conn), options: options, stays: stays}
	if s.options == nil {
		err = s.call(ctx, "GetDevicePluginOptions", func(ctx context.Context, s *session) (err error) {
			s.options, err = s.client.GetDevicePluginOptions(ctx, &api.Empty{})
			return err
		})
	}
	if err == nil {
		err = m.records.know(name)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	s.ctx, s.end = context.WithCancel(m.ctx)
	m.mu.Lock()
	p := m.plugins[name]
	if p == nil {
		p = &plugin{}
		m.plugins[name] = p
	}
	before := p.session
	p.session = s
	m.mu.Unlock()
	if before != nil {
		before.end()
	}
	m.sessions.Go(func() { m.follow(s) })
	return s, nil
}

// follow reads the plugin's reports of its devices until it ends.
func (m *Manager) follow(s *session) {
	defer s.conn.Close()
	defer m.lose(s, true)
	for {
		err := m.listen(s)
		if s.ctx.Err() != nil {
			return
		}
		m.Log.Warn("a device plugin has broken off", zap.String("resource", string(s.name)),
			zap.String("problem", pluginsocket.Clip(err.Error())))
		if !s.stays {
			return
		}
		m.lose(s, false)
		select {
		case <-s.ctx.Done():
			return
		case <-time.After(followAgain):
		}
	}
}

func (m *Manager) listen(s *session) error {
	stream, err := s.client.ListAndWatch(s.ctx, &api.Empty{})
	if err != nil {
		return err
	}
	for {
		list, err := stream.Recv()
		if err != nil {
			return err
		}
		devices, refused := healthOf(list)
		if len(refused) > 0 {
			m.Log.Warn("devices are left out: an ID must be UTF-8 of 1 to 253 bytes",
				zap.String("resource", string(s.name)), zap.Int("devices", len(refused)),
				zap.String("first", refused[0]))
		}
		m.learn(s, devices)
	}
}

// learn takes in the devices of a plugin.
func (m *Manager) learn(s *session, devices map[string]bool) {
	m.change(s, func(p *plugin) { p.source = source{Devices: devices, Live: true} })
}

// lose notes that a plugin is away; ended means that its session does not resume.
func (m *Manager) lose(s *session, ended bool) {
	m.change(s, func(p *plugin) {
		if p.Live {
			p.Live, p.GoneAt = false, time.Now()
		}
		if ended {
			p.session = nil
		}
	})
}

// change changes what is known of a plugin, unless another one has replaced it, and calls the Config's functions.
func (m *Manager) change(s *session, do func(*plugin)) {
	m.mu.Lock()
	p := m.plugins[s.name]
	if p.session != s || m.ctx.Err() != nil {
		m.mu.Unlock()
		return
	}
	away := !p.Live
	do(p)
	holders, waiting := m.holdersLocked(s.name), []types.UID(nil)
	if away && p.Live {
		waiting = slices.Collect(maps.Keys(m.waiting))
		holders, waiting = nil, append(waiting, holders...)
	}
	m.mu.Unlock()
	m.Changed()
	for _, uid := range holders {
		m.Affected(uid)
	}
	for _, uid := range waiting {
		m.Returned(uid)
	}
}

// call makes a call to the plugin of a resource.
func (m *Manager) call(ctx context.Context, name corev1.ResourceName, method string,
	do func(context.Context, *session) error) error {
	m.mu.Lock()
	var s *session
	if p := m.plugins[name]; p != nil && p.Live {
		s = p.session
	}
	m.mu.Unlock()
	if s == nil {
		return fmt.Errorf("%s of %s: %w", method, name, errAway)
	}
	return s.call(ctx, method, do)
}

// call bounds the time of a call and adds the plugin to its error.
func (s *session) call(ctx context.Context, method string, do func(context.Context, *session) error) error {
	bounded, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := do(bounded, s)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%s of the plugin of %s: %w", method, s.name, ctx.Err())
	}
	if answer, ok := status.FromError(err); ok {
		err = status.Error(answer.Code(), pluginsocket.Clip(answer.Message()))
	}
	return fmt.Errorf("%s of the plugin of %s: %w", method, s.name, err)
}
