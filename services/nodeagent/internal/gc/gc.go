package gc

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"

	"keelson.dev/kit/events"
	"keelson.dev/kit/failpoint"
	"keelson.dev/services/nodeagent/internal/imagepull"
	"keelson.dev/services/nodeagent/internal/observed"
	"keelson.dev/services/nodeagent/internal/runtime"
)

// How often containers and images are collected.
const (
	containersEvery = time.Minute
	imagesEvery     = 5 * time.Minute
)

// Config is what a Collector needs.
type Config struct {
	Runtime runtime.Runtime
	Log     *zap.Logger
	// ImageFs returns a folder on the file system that holds the images.
	ImageFs func(ctx context.Context) (string, error)
	// Images are the settings for removing images, Records the records about existing ones.
	Images  Settings
	Records *imagepull.Records
	// AddressesDir is where host-local keeps the addresses of this runtime's Pods; if empty, no address is released.
	AddressesDir string
	// Record writes an event about the node; nil writes none.
	Record func(events.Event)
}

// Collector removes what Pods have left.
type Collector struct {
	Config

	mu   sync.Mutex // guards uses
	uses map[string]imageUse
	// containersFail and imagesFail count the last failed rounds, short those in which images freed too little; only
	// Run uses them.
	containersFail, imagesFail, short failing
}

// New returns a Collector that does nothing yet.
func New(config Config) *Collector { return &Collector{Config: config, uses: map[string]imageUse{}} }

// Run collects until ctx ends. Images count as new when it starts, because their earlier use is unknown.
func (c *Collector) Run(ctx context.Context) {
	containers, images := time.NewTicker(containersEvery), time.NewTicker(imagesEvery)
	defer containers.Stop()
	defer images.Stop()
	err := c.tellImages(ctx, c.images(ctx))
	for {
		if err != nil && ctx.Err() == nil {
			c.Log.Warn("removing what Pods have left failed in part", zap.Error(err))
		}
		select {
		case <-ctx.Done():
			return
		case <-containers.C:
			err = c.Containers(ctx)
			c.tell(ctx, c.containersFail.began(err, 1), "ContainerGCFailed", err)
			err = errors.Join(err, c.Runtime.EndOrphans(ctx), c.addresses(ctx))
		case <-images.C:
			err = c.tellImages(ctx, c.images(ctx))
		}
	}
}

// tellImages reports image rounds that fail repeatedly: the first may come before the runtime knows its disk.
func (c *Collector) tellImages(ctx context.Context, err error) error {
	c.tell(ctx, c.imagesFail.began(err, 2), "ImageGCFailed", err)
	return err
}

// tell writes an event about a failure; the end of the agent is no failure.
func (c *Collector) tell(ctx context.Context, due bool, reason string, err error) {
	if due && c.Record != nil && ctx.Err() == nil {
		c.Record(events.Warning(reason, "%v", err))
	}
}

// Containers removes unneeded instances and sandboxes.
func (c *Collector) Containers(ctx context.Context) error {
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

// images removes images that were unused for too long, regardless of the disk, and others until the file system of
// the images is down to the low percentage.
func (c *Collector) images(ctx context.Context) error {
	need, err := c.needed(ctx)
	freed, failed := c.removeImages(ctx, need)
	var short error
	if failed == nil && freed < need {
		short = errors.New(tooLittle(need, freed))
	}
	c.tell(ctx, c.short.began(short, 1), "FreeDiskSpaceFailed", short)
	return errors.Join(err, failed, short)
}

// needed returns how many bytes of images must be freed.
func (c *Collector) needed(ctx context.Context) (uint64, error) {
	dir, err := c.ImageFs(ctx)
	if err != nil {
		return 0, err
	}
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		return 0, fmt.Errorf("looking at the file system of %s: %w", dir, err)
	}
	if fs.Blocks == 0 {
		return 0, errors.New("invalid capacity 0 on image filesystem")
	}
	block := uint64(fs.Bsize)
	return toFree(fs.Blocks*block, fs.Bavail*block, c.Images.HighPercent, c.Images.LowPercent), nil
}

// UnusedImages removes all unused images except new ones.
func (c *Collector) UnusedImages(ctx context.Context) error {
	_, err := c.removeImages(ctx, math.MaxUint64)
	return err
}

// removeImages removes images that were unused for too long, and further unused ones until at least need bytes are
// freed, if there are enough. It returns the size of the removed images.
func (c *Collector) removeImages(ctx context.Context, need uint64) (freed uint64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	mark := c.Records.Mark()
	images, err := c.Runtime.ListImages(ctx)
	if err != nil {
		return 0, err
	}
	pods, err := c.Runtime.ListPods(ctx)
	if err != nil {
		return 0, err
	}
	inUse, err := c.imagesOf(ctx, pods)
	if err != nil {
		return 0, err
	}
	now := time.Now()
	c.note(images, inUse, now)
	problems := []error{c.Records.Forget(images, mark)}
	for _, id := range unusedImages(unused(images, inUse), c.uses, need, c.Images, now) {
		c.Log.Info("removing an image that nothing uses", zap.String("image", id))
		failed := failpoint.Around("nodeagent/image.collect", func() error { return c.Runtime.RemoveImage(ctx, id) })
		if failed == nil {
			freed += sizeOf(images, id)
		}
		problems = append(problems, failed)
	}
	return freed, errors.Join(problems...)
}

// imagesOf returns the images that containers were created from or have as volumes.
func (c *Collector) imagesOf(ctx context.Context, pods []observed.Pod) (map[string]bool, error) {
	out := map[string]bool{}
	for i := range pods {
		for _, container := range pods[i].Containers {
			for id := range strings.SplitSeq(container.Annotations[runtime.AnnotationVolumeImages], ",") {
				out[id] = true
			}
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

// note records the use of images.
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
