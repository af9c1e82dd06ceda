package deviceplugin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"keelson.dev/services/nodeagent/internal/pluginsocket"
)

// socketName is the socket at which plugins register.
const socketName = "kubelet.sock"

// serveAgain is the pause before serving registrations is tried again.
const serveAgain = 10 * time.Second

// Dir returns the folder of the plugins' sockets.
func (m *Manager) Dir() string { return filepath.Join(m.Root, "device-plugins") }

// Run accepts plugins until ctx ends.
func (m *Manager) Run(ctx context.Context) {
	defer m.sessions.Wait()
	defer m.end()
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := m.serve(ctx); err != nil {
			m.Log.Warn("device plugins cannot register, trying again", zap.Error(err))
		}
	}, serveAgain)
}

// serve accepts registrations until ctx ends. It first removes all sockets of the folder: so plugins notice that
// they have to register again.
func (m *Manager) serve(ctx context.Context) error {
	if err := clearSockets(m.Dir()); err != nil {
		return err
	}
	server := grpc.NewServer()
	api.RegisterRegistrationServer(server, &registrar{m: m})
	return pluginsocket.Serve(ctx, m.Dir(), socketName, server)
}

// clearSockets creates the folder, and removes the sockets in it.
func clearSockets(dir string) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("making the folder of device plugins: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("reading the folder of device plugins: %w", err)
	}
	var problems []error
	for _, entry := range entries {
		if entry.Type() != fs.ModeSocket {
			continue
		}
		if err := os.Remove(filepath.Join(dir, entry.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			problems = append(problems, fmt.Errorf("removing an old socket: %w", err))
		}
	}
	return errors.Join(problems...)
}

// registrar is the service at which plugins register.
type registrar struct {
	api.UnimplementedRegistrationServer
	m *Manager
}

// Register implements api.RegistrationServer.
func (r *registrar) Register(ctx context.Context, in *api.RegisterRequest) (*api.Empty, error) {
	name := in.GetResourceName()
	err := checkPlugin(name, in.GetVersion())
	if err == nil {
		err = checkEndpoint(name, in.GetEndpoint())
	}
	if err == nil {
		options := in.GetOptions()
		if options == nil {
			options = &api.DevicePluginOptions{}
		}
		_, err = r.m.begin(ctx, corev1.ResourceName(name), filepath.Join(r.m.Dir(), in.GetEndpoint()), options, false)
	}
	if err != nil {
		r.m.Log.Warn("a device plugin cannot register", zap.Error(err))
		return nil, err
	}
	r.m.Log.Info("a device plugin has registered", zap.String("resource", name))
	return &api.Empty{}, nil
}

// TakeIn accepts a plugin that has registered in the folder of all kinds of plugins.
func (m *Manager) TakeIn(ctx context.Context, info *registration.PluginInfo, endpoint string) (func(), error) {
	if err := checkPlugin(info.GetName(), info.GetSupportedVersions()...); err != nil {
		return nil, err
	}
	s, err := m.begin(ctx, corev1.ResourceName(info.GetName()), endpoint, nil, true)
	if err != nil {
		return nil, err
	}
	m.Log.Info("a device plugin has registered", zap.String("resource", info.GetName()))
	return s.end, nil
}
