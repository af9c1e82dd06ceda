// Package csidriver is a small CSI driver for tests. Its volumes are of one machine, which its nodes share but are
// given one at a time: folders; file systems in memory, if their PersistentVolume says so; and, for Pods that use a
// volume as a device, files as loop devices. It is served in the process of a test, by sockets in the folders of
// nodeagents.
//
//	storage.go  what all nodes reach, and the attacher
//	resizer.go  how a volume grows in the storage
//	driver.go   the driver on one node
//	volume.go   its calls about one volume
//	mount.go    what it does to the machine
//	loop.go     the same for loop devices
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
	// loops are the devices of staged volumes, by handle. Only who holds calls uses them.
	loops map[string]*os.File
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
	out := &csi.NodeGetCapabilitiesResponse{}
	for _, kind := range []csi.NodeServiceCapability_RPC_Type{csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME,
		csi.NodeServiceCapability_RPC_GET_VOLUME_STATS, csi.NodeServiceCapability_RPC_VOLUME_CONDITION,
		csi.NodeServiceCapability_RPC_EXPAND_VOLUME} {
		out.Capabilities = append(out.Capabilities, &csi.NodeServiceCapability{Type: &csi.NodeServiceCapability_Rpc{
			Rpc: &csi.NodeServiceCapability_RPC{Type: kind}}})
	}
	return out, nil
}
