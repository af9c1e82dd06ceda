package pressure

import (
	"context"
	"errors"
	"io/fs"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/nodeagent/internal/cgroup"
	"keelson.dev/services/nodeagent/internal/diskusage"
)

// Meter measures what Pods use.
type Meter struct {
	// Cgroups reads memory and processes; cgroup.Tree implements it.
	Cgroups interface {
		PodUsage(pod *corev1.Pod) (cgroup.Usage, error)
		ContainerUsage(pod *corev1.Pod, id string) (cgroup.Usage, error)
	}
	Disk diskusage.Meter
	// ImagesApart reports whether what containers write is on another file system than volumes and logs.
	ImagesApart func(ctx context.Context) (bool, error)
}

// Measure returns how much a Pod uses of the signal's resource. A Pod without a cgroup uses nothing. On an error it
// also returns what it has found so far.
func (m Meter) Measure(ctx context.Context, pod *Pod, s Signal) (Usage, error) {
	switch what := s.starves(); what {
	case storage, inodes:
		return m.disk(ctx, pod, s, what)
	case pids:
		usage, err := absent(m.Cgroups.PodUsage(pod.Pod))
		return Usage{Pod: int64(usage.Pids)}, err
	}
	usage, err := absent(m.Cgroups.PodUsage(pod.Pod))
	out := Usage{Pod: int64(usage.WorkingSet), Containers: map[string]int64{}}
	for i := range pod.Running {
		c := &pod.Running[i]
		if _, newer := out.Containers[c.Name]; newer || err != nil {
			continue
		}
		var part cgroup.Usage
		part, err = absent(m.Cgroups.ContainerUsage(pod.Pod, c.ID))
		out.Containers[c.Name] = int64(part.WorkingSet)
	}
	return out, err
}

func absent(usage cgroup.Usage, err error) (cgroup.Usage, error) {
	if errors.Is(err, fs.ErrNotExist) {
		return cgroup.Usage{}, nil
	}
	return usage, err
}

// disk counts only what is on the signal's file system.
func (m Meter) disk(ctx context.Context, pod *Pod, s Signal, what starved) (Usage, error) {
	apart, err := m.ImagesApart(ctx)
	if err != nil {
		return Usage{}, err
	}
	parts := s.parts(apart)
	found, err := m.Disk.Pod(ctx, pod.Pod, parts, diskusage.Bound)
	amount := func(u diskusage.Usage) int64 {
		if what == inodes {
			return u.Inodes
		}
		return u.Bytes
	}
	out := Usage{Pod: amount(found.Of(parts)), Containers: map[string]int64{}}
	for name, c := range found.Containers {
		out.Containers[name] = amount(c.Of(parts))
	}
	return out, err
}

// parts returns the parts of a Pod that are on the signal's file system.
func (s Signal) parts(imagesApart bool) diskusage.Parts {
	onImages := s == ImageFsAvailable || s == ImageFsInodesFree
	return diskusage.Parts{Files: !imagesApart || !onImages, Layers: !imagesApart || onImages}
}
