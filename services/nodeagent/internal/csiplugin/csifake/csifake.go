// Package csifake is a CSI driver for tests: it serves real unix sockets, mounts with a volume.Mounter in memory,
// and misbehaves on demand.
package csifake

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"keelson.dev/services/nodeagent/internal/volume/mountfake"
)

// Driver is a driver and its registration. Set the fields before it serves.
type Driver struct {
	csi.UnimplementedNodeServer
	registration.UnimplementedRegistrationServer
	Plugin  registration.PluginInfo
	Info    *csi.NodeGetInfoResponse
	Can     []csi.NodeServiceCapability_RPC_Type
	Mounter *mountfake.Mounter
	// Data is the folder that all volumes show.
	Data string
	// Stats is the answer about how full any volume is.
	Stats *csi.NodeGetVolumeStatsResponse
	// Before is called with each call about a volume; its error is the answer. Nil for none.
	Before func(ctx context.Context, method string) error

	mu     sync.Mutex // guards the fields below
	calls  []string
	stages []*csi.NodeStageVolumeRequest
	pubs   []*csi.NodePublishVolumeRequest
	asked  []*csi.NodeGetVolumeStatsRequest
	grown  []*csi.NodeExpandVolumeRequest
	told   []*registration.RegistrationStatus
}

// New returns a driver that stages volumes.
func New(name, data string, mounter *mountfake.Mounter) *Driver {
	return &Driver{
		Plugin: registration.PluginInfo{Type: "CSIPlugin", Name: name, SupportedVersions: []string{"1.0.0"}},
		Info: &csi.NodeGetInfoResponse{NodeId: "id-of-n", MaxVolumesPerNode: 7,
			AccessibleTopology: &csi.Topology{Segments: map[string]string{"example.com/rack": "r1"}}},
		Can:     []csi.NodeServiceCapability_RPC_Type{csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME},
		Mounter: mounter, Data: data,
	}
}

// Serve serves at a socket, which it creates, until the test or stop ends it.
func (d *Driver) Serve(t testing.TB, socket string) (stop func()) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(socket), 0o750); err != nil {
		t.Fatal(err)
	}
	// The path may be too long for a socket address.
	folder, err := os.Open(filepath.Dir(socket))
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	short := filepath.Join("/proc/self/fd", strconv.Itoa(int(folder.Fd())), filepath.Base(socket))
	listener, err := net.Listen("unix", short)
	if err != nil {
		t.Fatal(err)
	}
	listener.(*net.UnixListener).SetUnlinkOnClose(false)
	server := grpc.NewServer()
	csi.RegisterNodeServer(server, d)
	registration.RegisterRegistrationServer(server, d)
	go func() { _ = server.Serve(listener) }()
	stop = sync.OnceFunc(func() {
		server.Stop()
		_ = os.Remove(socket)
	})
	t.Cleanup(stop)
	return stop
}

// Calls returns the calls about volumes so far, and forgets them.
func (d *Driver) Calls() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	calls := d.calls
	d.calls = nil
	return calls
}

// Staged returns the requests to stage so far.
func (d *Driver) Staged() []*csi.NodeStageVolumeRequest {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.stages)
}

// Published returns the requests to publish so far.
func (d *Driver) Published() []*csi.NodePublishVolumeRequest {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.pubs)
}

// Asked returns the requests for the usage of volumes so far.
func (d *Driver) Asked() []*csi.NodeGetVolumeStatsRequest {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.asked)
}

// Grown returns the requests to grow volumes so far.
func (d *Driver) Grown() []*csi.NodeExpandVolumeRequest {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.grown)
}

// Told returns the registration statuses that the driver got.
func (d *Driver) Told() []*registration.RegistrationStatus {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.told)
}

// GetInfo implements registration.RegistrationServer.
func (d *Driver) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{Type: d.Plugin.Type, Name: d.Plugin.Name, Endpoint: d.Plugin.Endpoint,
		SupportedVersions: d.Plugin.SupportedVersions}, nil
}

// NotifyRegistrationStatus implements registration.RegistrationServer.
func (d *Driver) NotifyRegistrationStatus(_ context.Context, status *registration.RegistrationStatus) (
	*registration.RegistrationStatusResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.told = append(d.told, status)
	return &registration.RegistrationStatusResponse{}, nil
}

// NodeGetInfo implements csi.NodeServer.
func (d *Driver) NodeGetInfo(ctx context.Context, _ *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	if d.Before != nil {
		if err := d.Before(ctx, "info"); err != nil {
			return nil, err
		}
	}
	return d.Info, nil
}

// NodeGetCapabilities implements csi.NodeServer.
func (d *Driver) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (
	*csi.NodeGetCapabilitiesResponse, error) {
	out := &csi.NodeGetCapabilitiesResponse{}
	for _, c := range d.Can {
		out.Capabilities = append(out.Capabilities, &csi.NodeServiceCapability{Type: &csi.NodeServiceCapability_Rpc{
			Rpc: &csi.NodeServiceCapability_RPC{Type: c}}})
	}
	return out, nil
}

func (d *Driver) begin(ctx context.Context, method, volume string) error {
	d.mu.Lock()
	d.calls = append(d.calls, method+" "+volume)
	d.mu.Unlock()
	if d.Before != nil {
		return d.Before(ctx, method)
	}
	return nil
}

// NodeStageVolume implements csi.NodeServer.
func (d *Driver) NodeStageVolume(ctx context.Context, r *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse,
	error) {
	d.mu.Lock()
	d.stages = append(d.stages, r)
	d.mu.Unlock()
	if err := d.begin(ctx, "stage", r.GetVolumeId()); err != nil {
		return nil, err
	}
	return &csi.NodeStageVolumeResponse{}, d.mount(r.GetStagingTargetPath())
}

// NodePublishVolume implements csi.NodeServer.
func (d *Driver) NodePublishVolume(ctx context.Context, r *csi.NodePublishVolumeRequest) (
	*csi.NodePublishVolumeResponse, error) {
	d.mu.Lock()
	d.pubs = append(d.pubs, r)
	d.mu.Unlock()
	if err := d.begin(ctx, "publish", r.GetVolumeId()); err != nil {
		return nil, err
	}
	if r.GetVolumeCapability().GetBlock() != nil {
		return &csi.NodePublishVolumeResponse{}, d.device(r.GetTargetPath())
	}
	return &csi.NodePublishVolumeResponse{}, d.mount(r.GetTargetPath())
}

// device puts a device in place, once.
func (d *Driver) device(target string) error {
	if is, err := d.Mounter.IsDevice(target); err != nil || is {
		return err
	}
	if err := os.WriteFile(target, nil, 0o600); err != nil {
		return err
	}
	return d.Mounter.Device(target)
}

// mount mounts the data, once.
func (d *Driver) mount(target string) error {
	if err := os.MkdirAll(target, 0o750); err != nil {
		return err
	}
	if mounted, err := d.Mounter.IsMount(target); err != nil || mounted {
		return err
	}
	data, err := os.Open(d.Data)
	if err != nil {
		return err
	}
	defer data.Close()
	return d.Mounter.Bind(data, target)
}

// NodeUnpublishVolume implements csi.NodeServer.
func (d *Driver) NodeUnpublishVolume(ctx context.Context, r *csi.NodeUnpublishVolumeRequest) (
	*csi.NodeUnpublishVolumeResponse, error) {
	if err := d.begin(ctx, "unpublish", r.GetVolumeId()); err != nil {
		return nil, err
	}
	err := d.Mounter.Unmount(r.GetTargetPath())
	_ = os.Remove(r.GetTargetPath())
	return &csi.NodeUnpublishVolumeResponse{}, err
}

// NodeUnstageVolume implements csi.NodeServer.
func (d *Driver) NodeUnstageVolume(ctx context.Context, r *csi.NodeUnstageVolumeRequest) (
	*csi.NodeUnstageVolumeResponse, error) {
	if err := d.begin(ctx, "unstage", r.GetVolumeId()); err != nil {
		return nil, err
	}
	return &csi.NodeUnstageVolumeResponse{}, d.Mounter.Unmount(r.GetStagingTargetPath())
}

// NodeGetVolumeStats implements csi.NodeServer.
func (d *Driver) NodeGetVolumeStats(ctx context.Context, r *csi.NodeGetVolumeStatsRequest) (
	*csi.NodeGetVolumeStatsResponse, error) {
	d.mu.Lock()
	d.asked = append(d.asked, r)
	d.mu.Unlock()
	if err := d.begin(ctx, "stats", r.GetVolumeId()); err != nil {
		return nil, err
	}
	return d.Stats, nil
}

// NodeExpandVolume implements csi.NodeServer.
func (d *Driver) NodeExpandVolume(ctx context.Context, r *csi.NodeExpandVolumeRequest) (*csi.NodeExpandVolumeResponse,
	error) {
	d.mu.Lock()
	d.grown = append(d.grown, r)
	d.mu.Unlock()
	if err := d.begin(ctx, "expand", r.GetVolumeId()); err != nil {
		return nil, err
	}
	return &csi.NodeExpandVolumeResponse{}, nil
}
