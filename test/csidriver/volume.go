package csidriver

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// NodeStageVolume implements the node service.
func (d *Driver) NodeStageVolume(_ context.Context, r *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse,
	error) {
	d.calls.Lock()
	defer d.calls.Unlock()
	if given := r.GetPublishContext()[nodeKey]; given != d.Node {
		return nil, status.Errorf(codes.FailedPrecondition, "publish_context is that of node %q", given)
	}
	handle, staging := r.GetVolumeId(), r.GetStagingTargetPath()
	folder, err := d.Storage.stage(handle, d.Node)
	switch {
	case err != nil:
		return nil, status.Error(codes.FailedPrecondition, err.Error())
	case r.GetVolumeCapability().GetBlock() != nil:
		err = d.stageDevice(handle, staging)
	case r.GetVolumeContext()[MediumKey] == Memory:
		err = d.mountMemory(staging, d.Storage.size(handle))
	default:
		if err = os.MkdirAll(folder, 0o777); err == nil {
			err = d.bind(folder, staging, false)
		}
	}
	return &csi.NodeStageVolumeResponse{}, err
}

// stagedDevice is where a device is staged.
func stagedDevice(staging string) string { return filepath.Join(staging, "device") }

// stageDevice makes a loop device of a volume's file, once.
func (d *Driver) stageDevice(handle, staging string) error {
	if d.loops[handle] == nil {
		loop, err := attach(d.Storage.image(handle))
		if err != nil {
			return err
		}
		if d.loops == nil {
			d.loops = map[string]*os.File{}
		}
		d.loops[handle] = loop
	}
	if err := touch(stagedDevice(staging)); err != nil {
		return err
	}
	return d.bind(d.loops[handle].Name(), stagedDevice(staging), false)
}

func touch(path string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return file.Close()
}

// NodePublishVolume implements the node service.
func (d *Driver) NodePublishVolume(_ context.Context, r *csi.NodePublishVolumeRequest) (
	*csi.NodePublishVolumeResponse, error) {
	d.calls.Lock()
	defer d.calls.Unlock()
	target := r.GetTargetPath()
	if r.GetVolumeCapability().GetBlock() != nil {
		if err := touch(target); err != nil {
			return nil, err
		}
		return &csi.NodePublishVolumeResponse{}, d.bind(stagedDevice(r.GetStagingTargetPath()), target, false)
	}
	if err := os.MkdirAll(target, 0o750); err != nil {
		return nil, err
	}
	return &csi.NodePublishVolumeResponse{}, d.bind(r.GetStagingTargetPath(), target, r.GetReadonly())
}

// NodeUnpublishVolume implements the node service.
func (d *Driver) NodeUnpublishVolume(_ context.Context, r *csi.NodeUnpublishVolumeRequest) (
	*csi.NodeUnpublishVolumeResponse, error) {
	d.calls.Lock()
	defer d.calls.Unlock()
	return &csi.NodeUnpublishVolumeResponse{}, d.unmountAndRemove(r.GetTargetPath())
}

// NodeUnstageVolume implements the node service.
func (d *Driver) NodeUnstageVolume(_ context.Context, r *csi.NodeUnstageVolumeRequest) (
	*csi.NodeUnstageVolumeResponse, error) {
	d.calls.Lock()
	defer d.calls.Unlock()
	if err := d.unmountAndRemove(stagedDevice(r.GetStagingTargetPath())); err != nil {
		return nil, err
	}
	if loop := d.loops[r.GetVolumeId()]; loop != nil {
		delete(d.loops, r.GetVolumeId())
		if err := detach(loop); err != nil {
			return nil, err
		}
	}
	if err := d.unmount(r.GetStagingTargetPath()); err != nil {
		return nil, err
	}
	d.Storage.unstage(r.GetVolumeId(), d.Node)
	return &csi.NodeUnstageVolumeResponse{}, nil
}

// NodeExpandVolume implements the node service.
func (d *Driver) NodeExpandVolume(_ context.Context, r *csi.NodeExpandVolumeRequest) (*csi.NodeExpandVolumeResponse,
	error) {
	d.calls.Lock()
	defer d.calls.Unlock()
	size := d.Storage.size(r.GetVolumeId())
	switch asked := r.GetCapacityRange().GetRequiredBytes(); {
	case size == 0:
		return nil, status.Error(codes.InvalidArgument, "a folder has no size")
	case asked > size:
		return nil, status.Errorf(codes.OutOfRange, "the volume has %d bytes, %d are asked for", size, asked)
	}
	var err error
	if r.GetVolumeCapability().GetBlock() != nil {
		loop := d.loops[r.GetVolumeId()]
		if loop == nil {
			return nil, status.Error(codes.NotFound, "the volume is not staged")
		}
		err = resize(loop)
	} else {
		err = d.growMemory(r.GetVolumePath(), size)
	}
	return &csi.NodeExpandVolumeResponse{CapacityBytes: size}, err
}

// NodeGetVolumeStats implements the node service.
func (d *Driver) NodeGetVolumeStats(_ context.Context, r *csi.NodeGetVolumeStatsRequest) (
	*csi.NodeGetVolumeStatsResponse, error) {
	d.calls.Lock()
	defer d.calls.Unlock()
	out := &csi.NodeGetVolumeStatsResponse{VolumeCondition: &csi.VolumeCondition{Message: "in order"}}
	if why := d.Storage.ails(r.GetVolumeId()); why != "" {
		out.VolumeCondition = &csi.VolumeCondition{Abnormal: true, Message: why}
	}
	if d.loops[r.GetVolumeId()] != nil { // of a device only the size is known
		out.Usage = []*csi.VolumeUsage{{Unit: csi.VolumeUsage_BYTES, Total: d.Storage.size(r.GetVolumeId())}}
		return out, nil
	}
	var err error
	out.Usage, err = d.usage(r.GetVolumePath())
	return out, err
}
