package deviceplugin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// look is how often the plugin looks whether its socket is there; registerFor bounds one registration.
const (
	look        = 100 * time.Millisecond
	registerFor = 5 * time.Second
)

// socketFile is the plugin's own socket in the folder of sockets.
const socketFile = "lights.sock"

func (p *Plugin) folder() string {
	if p.Watched {
		return filepath.Join(p.AgentRoot, "plugins_registry")
	}
	return filepath.Join(p.AgentRoot, "device-plugins")
}

func (p *Plugin) socket() string { return filepath.Join(p.folder(), socketFile) }

// Start serves until Kill. A nodeagent that starts removes the socket: then the plugin serves and registers again.
func (p *Plugin) Start() error {
	ctx, stop := context.WithCancel(context.Background())
	p.stop, p.done = stop, make(chan struct{})
	if err := p.serve(); err != nil {
		stop()
		return err
	}
	go func() {
		defer close(p.done)
		p.keep(ctx)
	}()
	return nil
}

// Kill ends the plugin and leaves its socket, as a process that is killed does.
func (p *Plugin) Kill() {
	p.stop()
	<-p.done
	p.server.Stop()
}

// keep registers, and serves again each time the socket has gone.
func (p *Plugin) keep(ctx context.Context) {
	registered := p.Watched
	for ctx.Err() == nil {
		if _, err := os.Lstat(p.socket()); errors.Is(err, os.ErrNotExist) {
			p.server.Stop()
			if p.serve() == nil {
				registered = p.Watched
			}
		}
		if !registered {
			registered = p.register(ctx) == nil
		}
		select {
		case <-ctx.Done():
		case <-time.After(look):
		}
	}
}

// serve serves at a new socket.
func (p *Plugin) serve() error {
	if err := os.MkdirAll(p.folder(), 0o750); err != nil {
		return err
	}
	if err := os.Remove(p.socket()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: p.socket(), Net: "unix"})
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	listener.SetUnlinkOnClose(false)
	p.server = grpc.NewServer()
	api.RegisterDevicePluginServer(p.server, p)
	registration.RegisterRegistrationServer(p.server, p)
	go func(server *grpc.Server) { _ = server.Serve(listener) }(p.server)
	return nil
}

// register registers the plugin with the nodeagent.
func (p *Plugin) register(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, registerFor)
	defer cancel()
	conn, err := grpc.NewClient("unix:"+filepath.Join(p.folder(), filepath.Base(api.KubeletSocket)),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return fmt.Errorf("connecting to the nodeagent: %w", err)
	}
	defer conn.Close()
	_, err = api.NewRegistrationClient(conn).Register(ctx, &api.RegisterRequest{Version: api.Version,
		Endpoint: socketFile, ResourceName: p.Resource, Options: options})
	return err
}

// GetInfo implements the registration in the folder of all kinds of plugins.
func (p *Plugin) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{Type: registration.DevicePlugin, Name: p.Resource,
		SupportedVersions: api.SupportedVersions[:]}, nil
}

// NotifyRegistrationStatus implements the registration.
func (p *Plugin) NotifyRegistrationStatus(context.Context, *registration.RegistrationStatus) (
	*registration.RegistrationStatusResponse, error) {
	return &registration.RegistrationStatusResponse{}, nil
}
