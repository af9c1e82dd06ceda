package csivolume

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/failpoint"
	"keelson.dev/kit/volumename"
	"keelson.dev/services/nodeagent/internal/volume/ownership"
)

// waitTimeout bounds one wait for the attachment and for the driver; readTimeout bounds one read from the API.
const (
	waitTimeout = 2 * time.Minute
	readTimeout = 10 * time.Second
)

// SetUp sets up a Pod's volume and returns the folder that containers mount, or the device that they get. It is
// idempotent; for a volume that the Pod has already it checks the mount and does not call the driver. It waits until
// the Node in the API lists the volume as in use and attached, and for the driver, and ends early with ctx.
func (v *Volumes) SetUp(ctx context.Context, s Source) (path string, err error) {
	if path, stands, err := v.Published(s.Pod.UID, s.Name); err != nil || stands {
		return path, err
	}
	driver, err := v.object(ctx, s.Driver)
	if err != nil {
		return "", err
	}
	if err := check(s, driver); err != nil {
		return "", err
	}
	r, begun := v.of(s.at())
	if !begun {
		r = record{Driver: s.Driver, Handle: s.Handle, Name: s.Name, Pod: s.Pod.UID, Claim: s.Claim, Block: s.Block,
			Attachment: attachment(s, driver, v.NodeName)}
		if err := v.begin(s, r); err != nil {
			return "", err
		}
	}
	if r.id() != s.id() || r.Block != s.Block {
		return "", fmt.Errorf("volume %s was %s of CSI driver %s when the pod got it: it cannot become another one",
			s.Name, r.Handle, r.Driver)
	}
	c := call{Source: s, driver: driver, staging: v.staging(s.id()), target: v.published(s.at(), s.Block)}
	if c.publishContext, err = v.awaitAttached(ctx, s, r); err != nil {
		return "", err
	}
	return c.target, v.mount(ctx, c, r)
}

// object reads the object of a driver; nil if it has none.
func (v *Volumes) object(ctx context.Context, driver string) (*storagev1.CSIDriver, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	found, err := v.Objects.CSIDriver(ctx, driver)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading CSIDriver %s: %w", driver, err)
	}
	return found, nil
}

// Published returns where a volume is mounted that the Pod has already; false if it has yet to be set up.
func (v *Volumes) Published(pod types.UID, name string) (path string, stands bool, err error) {
	at := place{pod, name}
	r, begun := v.of(at)
	if !begun || !r.Published {
		return "", false, nil
	}
	target := v.published(at, r.Block)
	if !r.Block {
		stands, err = v.Mounter.IsMount(target)
		return target, stands, err
	}
	stands, err = v.Mounter.IsDevice(target)
	return target, stands && r.Boot == v.Boot, err
}

// begin records that the Pod uses the volume, unless it must be the only user and is not.
func (v *Volumes) begin(s Source, r record) error {
	if s.Single {
		users := slices.DeleteFunc(v.users(s.id()), func(pod types.UID) bool { return pod == s.Pod.UID })
		if len(users) > 0 {
			return fmt.Errorf("persistentvolume %q has access mode ReadWriteOncePod and is in use by pod %s", s.Name,
				users[0])
		}
	}
	return v.put(s.at(), r)
}

// awaitAttached waits until the API server knows that the volume is in use here, and lists it as attached: both in
// one version of the Node, so that a controller that detaches unused volumes cannot have missed it. It returns what
// the attacher has for the driver.
func (v *Volumes) awaitAttached(ctx context.Context, s Source, r record) (map[string]string, error) {
	if r.Attachment == "" {
		return nil, nil
	}
	name := volumename.Unique(s.Driver, s.Handle)
	err := v.await(ctx, func() error {
		if !v.isReported(name) {
			return fmt.Errorf("volume %s waits until the API server knows that it is in use on node %s", s.Name,
				v.NodeName)
		}
		if !slices.ContainsFunc(v.Node().Status.VolumesAttached,
			func(a corev1.AttachedVolume) bool { return a.Name == name }) {
			return fmt.Errorf("volume %s is not attached to node %s yet", s.Name, v.NodeName)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	reading, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	found, err := v.Objects.VolumeAttachment(reading, r.Attachment)
	if err != nil {
		return nil, fmt.Errorf("reading the attachment of volume %s: %w", s.Name, err)
	}
	if err := checkAttachment(s, v.NodeName, found); err != nil {
		return nil, err
	}
	return found.Status.AttachmentMetadata, nil
}

// await returns nil when nothing is missing any more, or the last error after waitTimeout.
func (v *Volumes) await(ctx context.Context, missing func() error) error {
	late := time.NewTimer(waitTimeout)
	defer late.Stop()
	for {
		heard := v.bell.heard()
		err := missing()
		if err == nil {
			return nil
		}
		select {
		case <-heard:
		case <-late.C:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// mount stages and publishes an attached volume, and changes its group to the Pod's.
func (v *Volumes) mount(ctx context.Context, c call, r record) error {
	var driver Driver
	err := v.await(ctx, func() (err error) {
		driver, err = v.Driver(c.Source.Driver)
		return err
	})
	if err != nil {
		return err
	}
	c.can = driver.Can()
	if c.stageSecrets, err = v.secret(ctx, c.StageSecret); err != nil {
		return err
	}
	if c.publishSecrets, err = v.secret(ctx, c.PublishSecret); err != nil {
		return err
	}
	c.Growing = c.Growing && c.can.Expand
	unlock, err := v.locks.lock(ctx, c.id())
	if err != nil {
		return err
	}
	defer unlock()
	if !r.Asked {
		r.Asked = true
		if err := v.put(c.at(), r); err != nil {
			return err
		}
	}
	// Not cancelled half-way: what a driver has begun would go on while it is called to undo it.
	if err := v.publish(context.WithoutCancel(ctx), driver, &c, r); err != nil {
		return err
	}
	r.Published, r.Size = true, c.Size
	if c.Block {
		r.Boot = v.Boot
	}
	return v.put(c.at(), r)
}

// publish makes the calls of the driver about a volume, which grows if it has to, and checks what the driver has done.
func (v *Volumes) publish(ctx context.Context, driver Driver, c *call, r record) error {
	if c.stages() {
		if err := v.stageVolume(ctx, driver, *c, r); err != nil {
			return err
		}
		if err := v.growNew(ctx, driver, c, c.staging); err != nil {
			return err
		}
	}
	if c.Block {
		if err := os.MkdirAll(filepath.Dir(c.target), 0o750); err != nil {
			return fmt.Errorf("making the folder of the device: %w", err)
		}
	}
	err := failpoint.Around("nodeagent/csi.publish", func() error { return driver.Publish(ctx, c.publishRequest()) })
	if err != nil {
		return err
	}
	if err := v.inspect(*c); err != nil {
		return err
	}
	if !c.stages() {
		if err := v.growNew(ctx, driver, c, c.target); err != nil {
			return err
		}
	}
	return give(*c)
}

// growNew grows a volume that no container of the Pod has yet, if it may have to grow.
func (v *Volumes) growNew(ctx context.Context, driver Driver, c *call, path string) error {
	if !c.Growing {
		return nil
	}
	size, err := v.grow(ctx, driver, *c, path)
	c.Size = max(c.Size, size)
	return err
}

// stageVolume stages the volume, after recording that.
func (v *Volumes) stageVolume(ctx context.Context, driver Driver, c call, r record) error {
	err := v.putStaged(record{Driver: r.Driver, Handle: r.Handle, Attachment: r.Attachment})
	if err != nil {
		return err
	}
	if err := os.Mkdir(c.staging, 0o750); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("making the staging folder: %w", err)
	}
	return failpoint.Around("nodeagent/csi.stage", func() error { return driver.Stage(ctx, c.stageRequest()) })
}

// inspect checks that the driver has done what it reports: otherwise a Pod would write into the agent's own folder,
// or through a link of the driver.
func (v *Volumes) inspect(c call) error {
	if c.Block {
		is, err := v.Mounter.IsDevice(c.target)
		if err == nil && !is {
			err = fmt.Errorf("CSI driver %s says that volume %s is published, but no block device is at %s",
				c.Source.Driver, c.Name, c.target)
		}
		return err
	}
	info, err := os.Lstat(c.target)
	if err != nil {
		return fmt.Errorf("CSI driver %s says that volume %s is published: %w", c.Source.Driver, c.Name, err)
	}
	mounted, err := v.Mounter.IsMount(c.target)
	if err == nil && (!mounted || !info.IsDir()) {
		err = fmt.Errorf("CSI driver %s says that volume %s is published, but no folder is mounted at %s",
			c.Source.Driver, c.Name, c.target)
	}
	return err
}

// give changes the volume's group to the Pod's, unless the driver has done so.
func give(c call) error {
	group := c.group()
	if group < 0 || c.can.MountGroup {
		return nil
	}
	policy := ptr.Deref(c.Pod.Spec.SecurityContext.FSGroupChangePolicy, corev1.FSGroupChangeAlways)
	if err := ownership.Give(c.target, int(group), policy == corev1.FSGroupChangeOnRootMismatch); err != nil {
		return fmt.Errorf("applying fsGroup: %w", err)
	}
	return nil
}

// secret reads the driver's credentials.
func (v *Volumes) secret(ctx context.Context, ref *corev1.SecretReference) (map[string]string, error) {
	if ref == nil || ref.Name == "" {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	found, err := v.Objects.DriverSecret(ctx, *ref)
	if err != nil {
		return nil, fmt.Errorf("reading the driver's secret %s/%s: %w", ref.Namespace, ref.Name, err)
	}
	out := map[string]string{}
	for key, value := range found.Data {
		out[key] = string(value)
	}
	return out, nil
}
