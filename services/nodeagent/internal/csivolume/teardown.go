package csivolume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/failpoint"
)

// TearDown removes a volume from a Pod: when it succeeds, nothing of the volume is left in the Pod's folder. If the
// driver fails to do its part for long, the agent unmounts the volume itself, and the volume stays in use until Run
// has had the driver unpublish it.
func (v *Volumes) TearDown(ctx context.Context, pod types.UID, name string) error {
	at := place{pod, name}
	v.wishes.drop(at)
	v.end(at)
	r, known := v.of(at)
	target := v.published(at, r.Block)
	if !known || !r.Asked {
		// No driver was called, or which one cannot be determined any more.
		if err := v.abandon(at); err != nil {
			return err
		}
		return v.forget(at, r)
	}
	unlock, err := v.locks.lock(ctx, r.id())
	if err != nil {
		return err
	}
	defer unlock()
	began := v.Now()
	if err = v.unpublish(ctx, r, target); err == nil {
		return v.forget(at, r)
	}
	if ctx.Err() != nil {
		return err
	}
	if r.Published = false; r.FailingSince == nil {
		r.FailingSince = &began
		err = errors.Join(err, v.put(at, r))
	}
	if !letGo(*r.FailingSince, v.Now()) {
		return err
	}
	v.Log.Warn("a Pod ends without its CSI driver: the volume stays in use", zap.String("driver", r.Driver),
		zap.String("volume", name), zap.String("uid", string(pod)), zap.Error(err))
	if err := v.unmount(target); err != nil {
		return err
	}
	return failpoint.Around("nodeagent/csi.leave", func() error { return v.leave(at, r) })
}

// abandon unmounts a volume of which it is not known whether it is a device.
func (v *Volumes) abandon(at place) error {
	for _, block := range []bool{false, true} {
		target := v.published(at, block)
		if err := v.unmount(target); err != nil {
			return err
		}
		v.clear(target, record{Block: block})
	}
	return nil
}

// clear removes what a driver has left where it had published a volume.
func (v *Volumes) clear(target string, r record) {
	if err := os.Remove(target); err != nil && !errors.Is(err, fs.ErrNotExist) {
		v.Log.Warn("a CSI driver has left something behind", zap.String("driver", r.Driver), zap.Error(err))
	}
	if r.Block {
		_ = os.Remove(filepath.Dir(target)) // unless other Pods have the device
	}
}

// forget drops what is known of a Pod's volume when nothing is mounted any more.
func (v *Volumes) forget(at place, r record) error {
	v.clear(v.published(at, r.Block), r)
	err := failpoint.Around("nodeagent/csi.forget", func() error { return v.drop(at) })
	v.lookForDue() // it may be unused now
	return err
}

// unpublish has the driver unpublish a volume and checks that it has.
func (v *Volumes) unpublish(ctx context.Context, r record, target string) error {
	driver, err := v.Driver(r.Driver)
	if err != nil {
		return err
	}
	err = failpoint.Around("nodeagent/csi.unpublish", func() error { return driver.Unpublish(ctx, r.Handle, target) })
	if err != nil {
		return err
	}
	if left, err := v.Mounter.Under(target); err != nil || len(left) > 0 {
		return errors.Join(err, fmt.Errorf("CSI driver %s says that a volume is unpublished: %d mounts are left at %s",
			r.Driver, len(left), target))
	}
	return nil
}

// unmount removes all mounts at and below a path.
func (v *Volumes) unmount(path string) error {
	mounts, err := v.Mounter.Under(path)
	if err != nil {
		return fmt.Errorf("listing the mounts of a CSI volume: %w", err)
	}
	for _, mount := range mounts {
		if err := v.Mounter.Unmount(mount); err != nil {
			return fmt.Errorf("unmounting %s: %w", mount, err)
		}
	}
	return nil
}
