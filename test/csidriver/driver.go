// Package csidriver is a small CSI driver for tests: every volume is a folder of one machine, which its nodes share but
// are given one at a time. It is served in the process of a test, by sockets in the folders of nodeagents.
//
//	storage.go  what all nodes reach, and the attacher
//	driver.go   the driver on one node
//	mount.go    what it does to the machine
package csidriver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"keelson.dev/kit/namespaces"
)

// Driver is the driver on one node.
type Driver struct {
	csi.UnimplementedNodeServer
	registration.UnimplementedRegistrationServer
	Storage *Storage
	// Node is the node's name, AgentRoot the folder of its agent.
	Node, AgentRoot string
	// Mounts is where it mounts: among those of the agent.
	Mounts namespaces.Files

	calls  sync.Mutex // one call at a time
	server *grpc.Server
}

// socket is where the driver registers and serves.
func (d *Driver) socket() string {
	return filepath.Join(d.AgentRoot, "plugins_registry", d.Storage.Name+"-reg.sock")
}

// Start serves until Kill.
func (d *Driver) Start() error {
	if err := os.MkdirAll(filepath.Dir(d.socket()), 0o750); err != nil {
		return err
	}
	if err := os.Remove(d.socket()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: d.socket(), Net: "unix"})
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	listener.SetUnlinkOnClose(false) // as a process that is killed leaves it
	d.server = grpc.NewServer()
	csi.RegisterNodeServer(d.server, d)
	registration.RegisterRegistrationServer(d.server, d)
	go func(server *grpc.Server) { _ = server.Serve(listener) }(d.server)
	return nil
}

// Kill ends the driver and leaves all that it has mounted, and its socket.
func (d *Driver) Kill() { d.server.Stop() }

// GetInfo implements the registration.
func (d *Driver) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{Type: registration.CSIPlugin, Name: d.Storage.Name,
		SupportedVersions: []string{"1.0.0"}}, nil
}

// NotifyRegistrationStatus implements the registration.
func (d *Driver) NotifyRegistrationStatus(context.Context, *registration.RegistrationStatus) (
	*registration.RegistrationStatusResponse, error) {
	return &registration.RegistrationStatusResponse{}, nil
}

// NodeGetInfo implements the node service.
func (d *Driver) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: d.Node + "-id", MaxVolumesPerNode: 8, AccessibleTopology: &csi.Topology{
		Segments: map[string]string{"topology." + d.Storage.Name + "/node": d.Node}}}, nil
}

// NodeGetCapabilities implements the node service.
func (d *Driver) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (
	*csi.NodeGetCapabilitiesResponse, error) {
	stage := &csi.NodeServiceCapability_RPC{Type: csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME}
	return &csi.NodeGetCapabilitiesResponse{Capabilities: []*csi.NodeServiceCapability{
		{Type: &csi.NodeServiceCapability_Rpc{Rpc: stage}}}}, nil
}

// NodeStageVolume implements the node service.
func (d *Driver) NodeStageVolume(_ context.Context, r *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse,
	error) {
	d.calls.Lock()
	defer d.calls.Unlock()
	if given := r.GetPublishContext()[nodeKey]; given != d.Node {
		return nil, status.Errorf(codes.FailedPrecondition, "publish_context is that of node %q", given)
	}
	folder, err := d.Storage.stage(r.GetVolumeId(), d.Node)
	if err != nil {
		return nil, status.Error(codes.FailedPrecondition, err.Error())
	}
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return nil, err
	}
	return &csi.NodeStageVolumeResponse{}, d.bind(folder, r.GetStagingTargetPath(), false)
}

// NodePublishVolume implements the node service.
func (d *Driver) NodePublishVolume(_ context.Context, r *csi.NodePublishVolumeRequest) (
	*csi.NodePublishVolumeResponse, error) {
	d.calls.Lock()
	defer d.calls.Unlock()
	if err := os.MkdirAll(r.GetTargetPath(), 0o750); err != nil {
		return nil, err
	}
	return &csi.NodePublishVolumeResponse{}, d.bind(r.GetStagingTargetPath(), r.GetTargetPath(), r.GetReadonly())
}

// NodeUnpublishVolume implements the node service.
func (d *Driver) NodeUnpublishVolume(_ context.Context, r *csi.NodeUnpublishVolumeRequest) (
	*csi.NodeUnpublishVolumeResponse, error) {
	d.calls.Lock()
	defer d.calls.Unlock()
	if err := d.unmount(r.GetTargetPath()); err != nil {
		return nil, err
	}
	if err := os.Remove(r.GetTargetPath()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}

// NodeUnstageVolume implements the node service.
func (d *Driver) NodeUnstageVolume(_ context.Context, r *csi.NodeUnstageVolumeRequest) (
	*csi.NodeUnstageVolumeResponse, error) {
	d.calls.Lock()
	defer d.calls.Unlock()
	if err := d.unmount(r.GetStagingTargetPath()); err != nil {
		return nil, err
	}
	d.Storage.unstage(r.GetVolumeId(), d.Node)
	return &csi.NodeUnstageVolumeResponse{}, nil
}
