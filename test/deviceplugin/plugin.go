// Package deviceplugin is a small device plugin for tests: its devices are lights, of which each is a folder of the
// machine, a variable and a device file that they share. It is served in the process of a test, by a socket in the
// folder of a nodeagent.
//
//	plugin.go    the devices, and what containers get of them
//	register.go  how it registers
package deviceplugin

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// What a container finds of its lights.
const (
	// Variable names them, Folder has a file for each.
	Variable = "LIGHTS"
	Folder   = "/lights"
	// DeviceFile says that the disk is full when it is written to.
	DeviceFile = "/dev/light"
	hostDevice = "/dev/full"
)

// Plugin has the lights of one node. Its exported fields are set before Start.
type Plugin struct {
	api.UnimplementedDevicePluginServer
	registration.UnimplementedRegistrationServer
	// Resource is the name of the extended resource, AgentRoot the folder of the node's agent, Lights that of the
	// lights.
	Resource, AgentRoot, Lights string
	// Watched makes the plugin register in the folder of all kinds of plugins.
	Watched bool

	server *grpc.Server
	stop   context.CancelFunc
	done   chan struct{}

	mu sync.Mutex // guards what follows
	// healthy are the lights, by ID; changed is closed and replaced when they change.
	healthy map[string]bool
	changed chan struct{}
	calls   []string
}

// New returns a plugin whose lights are all healthy.
func New(resource, agentRoot, lights string, ids ...string) *Plugin {
	p := &Plugin{Resource: resource, AgentRoot: agentRoot, Lights: lights, healthy: map[string]bool{},
		changed: make(chan struct{})}
	for _, id := range ids {
		p.healthy[id] = true
	}
	return p
}

// Set says how a light is. One that was not there before comes.
func (p *Plugin) Set(id string, healthy bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.healthy[id] = healthy
	close(p.changed)
	p.changed = make(chan struct{})
}

// Calls returns the calls that allocate and start, since it was last asked.
func (p *Plugin) Calls() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer func() { p.calls = nil }()
	return p.calls
}

func (p *Plugin) called(method string, ids []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, method+" "+strings.Join(ids, ","))
}

var options = &api.DevicePluginOptions{PreStartRequired: true, GetPreferredAllocationAvailable: true}

// GetDevicePluginOptions implements the plugin.
func (p *Plugin) GetDevicePluginOptions(context.Context, *api.Empty) (*api.DevicePluginOptions, error) {
	return options, nil
}

// ListAndWatch implements the plugin.
func (p *Plugin) ListAndWatch(_ *api.Empty, stream grpc.ServerStreamingServer[api.ListAndWatchResponse]) error {
	for {
		list, changed := p.list()
		if err := stream.Send(list); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-stream.Context().Done():
			return nil
		}
	}
}

func (p *Plugin) list() (*api.ListAndWatchResponse, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := &api.ListAndWatchResponse{}
	for _, id := range slices.Sorted(maps.Keys(p.healthy)) {
		health := api.Unhealthy
		if p.healthy[id] {
			health = api.Healthy
		}
		out.Devices = append(out.Devices, &api.Device{ID: id, Health: health})
	}
	return out, p.changed
}

// GetPreferredAllocation implements the plugin: it gives the last lights first.
func (p *Plugin) GetPreferredAllocation(_ context.Context, in *api.PreferredAllocationRequest) (
	*api.PreferredAllocationResponse, error) {
	out := &api.PreferredAllocationResponse{}
	for _, ask := range in.GetContainerRequests() {
		ids := slices.Sorted(slices.Values(ask.GetAvailableDeviceIDs()))
		slices.Reverse(ids)
		ids = slices.DeleteFunc(ids, func(id string) bool { return slices.Contains(ask.GetMustIncludeDeviceIDs(), id) })
		ids = slices.Concat(ask.GetMustIncludeDeviceIDs(), ids)[:ask.GetAllocationSize()]
		out.ContainerResponses = append(out.ContainerResponses,
			&api.ContainerPreferredAllocationResponse{DeviceIDs: ids})
	}
	return out, nil
}

// Allocate implements the plugin.
func (p *Plugin) Allocate(_ context.Context, in *api.AllocateRequest) (*api.AllocateResponse, error) {
	out := &api.AllocateResponse{}
	for _, ask := range in.GetContainerRequests() {
		p.called("Allocate", ask.GetDevicesIds())
		given := &api.ContainerAllocateResponse{
			Envs:        map[string]string{Variable: strings.Join(ask.GetDevicesIds(), ",")},
			Devices:     []*api.DeviceSpec{{ContainerPath: DeviceFile, HostPath: hostDevice, Permissions: "rw"}},
			Annotations: map[string]string{"lights.example.com/given": strings.Join(ask.GetDevicesIds(), ",")}}
		for _, id := range ask.GetDevicesIds() {
			host := filepath.Join(p.Lights, id)
			if err := os.MkdirAll(host, 0o755); err != nil {
				return nil, fmt.Errorf("making the folder of a light: %w", err)
			}
			if err := os.WriteFile(filepath.Join(host, "name"), []byte(id+"\n"), 0o600); err != nil {
				return nil, fmt.Errorf("writing the name of a light: %w", err)
			}
			given.Mounts = append(given.Mounts, &api.Mount{ContainerPath: Folder + "/" + id, HostPath: host,
				ReadOnly: true})
		}
		out.ContainerResponses = append(out.ContainerResponses, given)
	}
	return out, nil
}

// PreStartContainer implements the plugin.
func (p *Plugin) PreStartContainer(_ context.Context, in *api.PreStartContainerRequest) (
	*api.PreStartContainerResponse, error) {
	p.called("PreStartContainer", in.GetDevicesIds())
	return &api.PreStartContainerResponse{}, nil
}
