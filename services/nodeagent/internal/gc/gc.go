package gc

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"go.uber.org/zap"

	"keelson.dev/kit/failpoint"
	"keelson.dev/services/nodeagent/internal/observed"
	"keelson.dev/services/nodeagent/internal/runtime"
)

// How often is collected.
const (
	containersEvery = time.Minute
	imagesEvery     = 5 * time.Minute
)

// Config is what a Collector works with.
type Config struct {
	Runtime runtime.Runtime
	Log     *zap.Logger
	// Dir lies on the file system that holds the images.
	Dir string
	// HighPercent and LowPercent of that file system say when images are removed, and until when.
	HighPercent, LowPercent int
	// AddressesDir is where host-local keeps the addresses of this runtime's Pods; nothing is given back if it is
	// empty.
	AddressesDir string
}

// Collector removes what Pods have left.
type Collector struct {
	Config
	uses map[string]imageUse
}

// New returns a Collector that does nothing yet.
func New(config Config) *Collector { return &Collector{Config: config, uses: map[string]imageUse{}} }

// Run collects until ctx ends.
func (c *Collector) Run(ctx context.Context) {
	containers, images := time.NewTicker(containersEvery), time.NewTicker(imagesEvery)
	defer containers.Stop()
	defer images.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case <-containers.C:
			err = errors.Join(c.containers(ctx), c.addresses(ctx))
		case <-images.C:
			err = c.images(ctx)
		}
		if err != nil && ctx.Err() == nil {
			c.Log.Warn("removing what Pods have left failed in part", zap.Error(err))
		}
	}
}

func (c *Collector) containers(ctx context.Context) error {
	pods, err := c.Runtime.ListPods(ctx)
	if err != nil {
		return err
	}
	var problems []error
	for _, id := range deadContainers(pods) {
		problems = append(problems, failpoint.Around("nodeagent/container.collect",
			func() error { return c.Runtime.RemoveContainer(ctx, id) }))
	}
	for _, id := range deadSandboxes(pods) {
		problems = append(problems, failpoint.Around("nodeagent/sandbox.collect",
			func() error { return c.Runtime.RemoveSandbox(ctx, id) }))
	}
	return errors.Join(problems...)
}

func (c *Collector) images(ctx context.Context) error {
	images, err := c.Runtime.ListImages(ctx)
	if err != nil {
		return err
	}
	pods, err := c.Runtime.ListPods(ctx)
	if err != nil {
		return err
	}
	inUse, err := c.imagesOf(ctx, pods)
	if err != nil {
		return err
	}
	now := time.Now()
	c.note(images, inUse, now)
	var fs syscall.Statfs_t
	if err := syscall.Statfs(c.Dir, &fs); err != nil {
		return fmt.Errorf("looking at the file system of %s: %w", c.Dir, err)
	}
	block := uint64(fs.Bsize)
	need := toFree(fs.Blocks*block, fs.Bavail*block, c.HighPercent, c.LowPercent)
	var problems []error
	for _, id := range unusedImages(images, c.uses, inUse, need, now) {
		c.Log.Info("removing an image that nothing uses", zap.String("image", id))
		problems = append(problems, failpoint.Around("nodeagent/image.collect",
			func() error { return c.Runtime.RemoveImage(ctx, id) }))
	}
	return errors.Join(problems...)
}

// imagesOf returns the images that containers were made from.
func (c *Collector) imagesOf(ctx context.Context, pods []observed.Pod) (map[string]bool, error) {
	out := map[string]bool{}
	for i := range pods {
		for _, container := range pods[i].Containers {
			image, ok, err := c.Runtime.ImageStatus(ctx, container.Image)
			if err != nil {
				return nil, err
			}
			if ok {
				out[image.ID] = true
			}
		}
	}
	return out, nil
}

// note keeps account of the use of images.
func (c *Collector) note(images []runtime.Image, inUse map[string]bool, now time.Time) {
	next := make(map[string]imageUse, len(images))
	for _, image := range images {
		use, known := c.uses[image.ID]
		if !known {
			use.firstSeen = now
		}
		if inUse[image.ID] {
			use.lastUsed = now
		}
		next[image.ID] = use
	}
	c.uses = next
}
