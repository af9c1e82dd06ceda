package pressure

import (
	"context"
	"errors"
	"fmt"
	"math"

	"golang.org/x/sys/unix"

	"keelson.dev/services/nodeagent/internal/cgroup"
	"keelson.dev/services/nodeagent/internal/diskusage"
	"keelson.dev/services/nodeagent/internal/stats"
)

// Host reads the signals of a machine.
type Host struct {
	// Proc is the proc file system, NodeFs a folder on the file system of Pods.
	Proc, NodeFs string
	// ImageFs returns a folder on the file system of images and of what containers write.
	ImageFs func(ctx context.Context) (string, error)
	// Pods reads what all Pods use together; PodMemory is the memory allotted to them, in bytes.
	Pods      func() (cgroup.Usage, error)
	PodMemory int64
	// MaxPIDs is the maximum number of processes and threads.
	MaxPIDs int64
}

// Levels reads the signals of the thresholds, and returns the errors of those that could not be read.
func (h *Host) Levels(ctx context.Context, thresholds []Threshold) (map[Signal]Level, error) {
	out := map[Signal]Level{}
	var problems []error
	for _, t := range thresholds {
		if _, read := out[t.Signal]; read {
			continue
		}
		level, err := h.level(ctx, t.Signal)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		out[t.Signal] = level
	}
	return out, errors.Join(problems...)
}

func (h *Host) level(ctx context.Context, s Signal) (Level, error) {
	switch s {
	case MemoryAvailable:
		total, available, err := stats.HostMemory(h.Proc)
		return Level{Available: available, Capacity: total}, err
	case AllocatableMemory:
		return h.allocatable()
	case NodeFsAvailable, NodeFsInodesFree:
		return fileSystem(h.NodeFs, s == NodeFsInodesFree)
	case ImageFsAvailable, ImageFsInodesFree:
		dir, err := h.ImageFs(ctx)
		if err != nil {
			return Level{}, err
		}
		return fileSystem(dir, s == ImageFsInodesFree)
	case PIDAvailable:
		return h.processes()
	}
	return Level{}, fmt.Errorf("signal %s is not known", s)
}

// allocatable is measured against the machine's memory, like the threshold of memory.available from which its own
// derives.
func (h *Host) allocatable() (Level, error) {
	total, _, err := stats.HostMemory(h.Proc)
	if err != nil {
		return Level{}, err
	}
	usage, err := h.Pods()
	if err != nil {
		return Level{}, err
	}
	return Level{Available: max(h.PodMemory-int64(usage.WorkingSet), 0), Capacity: total}, nil
}

// ImagesApart reports whether images and what containers write are on another file system than Pods' volumes and
// logs.
func (h *Host) ImagesApart(ctx context.Context) (bool, error) {
	dir, err := h.ImageFs(ctx)
	if err != nil {
		return false, err
	}
	var node, images unix.Stat_t
	if err := unix.Stat(h.NodeFs, &node); err != nil {
		return false, fmt.Errorf("looking at %s: %w", h.NodeFs, err)
	}
	if err := unix.Stat(dir, &images); err != nil {
		return false, fmt.Errorf("looking at %s: %w", dir, err)
	}
	return node.Dev != images.Dev, nil
}

// fileSystem reads a file system's bytes or inodes. One that does not count inodes always has enough.
func fileSystem(dir string, inodes bool) (Level, error) {
	space, err := diskusage.SpaceOf(dir)
	switch {
	case err != nil:
		return Level{}, err
	case inodes && space.Inodes == 0:
		return Level{Available: math.MaxInt64}, nil
	case inodes:
		return Level{Available: int64(space.InodesFree), Capacity: int64(space.Inodes)}, nil
	}
	return Level{Available: int64(space.BytesAvailable), Capacity: int64(space.Bytes)}, nil
}

func (h *Host) processes() (Level, error) {
	running, err := stats.HostProcesses(h.Proc)
	if err != nil {
		return Level{}, err
	}
	return Level{Available: max(h.MaxPIDs-running, 0), Capacity: h.MaxPIDs}, nil
}
