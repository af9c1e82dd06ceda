// Package diskusage measures how much of the node's disk Pods use: their emptyDir volumes, their logs, and what
// their containers write into their own file systems.
package diskusage

import (
	"context"
	"fmt"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/nodeagent/internal/podfiles"
	"keelson.dev/services/nodeagent/internal/runtime"
	"keelson.dev/services/nodeagent/internal/volume/emptydir"
)

// Layers returns what the containers of a Pod have written into their own file systems; a runtime.Runtime
// implements it.
type Layers interface {
	Layers(ctx context.Context, podUID string) ([]runtime.Layer, error)
}

// Meter measures Pods.
type Meter struct {
	Files  podfiles.Root
	Layers Layers
}

// Container is how much of the disk a container uses.
type Container struct {
	Logs, Layer Usage
}

// Pod is how much of the disk a Pod uses.
type Pod struct {
	// Volumes holds, by name, the volumes on disk that are removed with the Pod.
	Volumes map[string]Usage
	// Containers holds all containers of the spec, by name.
	Containers map[string]Container
}

// Parts select which parts of a Pod count for one file system.
type Parts struct {
	// Files are volumes and logs, Layers what containers write into their own file systems.
	Files, Layers bool
}

// Add adds one usage to another.
func (u Usage) Add(other Usage) Usage {
	return Usage{Bytes: u.Bytes + other.Bytes, Inodes: u.Inodes + other.Inodes, TooDeep: u.TooDeep || other.TooDeep}
}

// Of returns the usage of the selected parts of a container.
func (c Container) Of(parts Parts) Usage {
	var sum Usage
	if parts.Files {
		sum = sum.Add(c.Logs)
	}
	if parts.Layers {
		sum = sum.Add(c.Layer)
	}
	return sum
}

// Of returns the total usage of the selected parts of a Pod.
func (p *Pod) Of(parts Parts) Usage {
	var sum Usage
	for _, c := range p.Containers {
		sum = sum.Add(c.Of(parts))
	}
	if parts.Files {
		for _, v := range p.Volumes {
			sum = sum.Add(v)
		}
	}
	return sum
}

// Volume measures one emptyDir volume of a Pod.
func (m Meter) Volume(ctx context.Context, pod *corev1.Pod, name string, enough Enough) (Usage, error) {
	return Folder(ctx, m.Files.Volume(pod.UID, emptydir.Kind{}.Name(), name), enough)
}

// logs measures the logs of all instances of a container.
func (m Meter) logs(ctx context.Context, pod *corev1.Pod, container string, enough Enough) (Usage, error) {
	return Folder(ctx, filepath.Dir(m.Files.ContainerLog(pod, container, 0)), enough)
}

// OnDisk reports whether a volume is on the node's disk and is removed with its Pod.
func OnDisk(v *corev1.Volume) bool {
	return v.EmptyDir != nil && v.EmptyDir.Medium == corev1.StorageMediumDefault
}

// Pod measures the selected parts of a Pod; enough bounds each of its folders. On an error it also returns what it
// has found so far.
func (m Meter) Pod(ctx context.Context, pod *corev1.Pod, parts Parts, enough Enough) (Pod, error) {
	out := Pod{Volumes: map[string]Usage{}, Containers: map[string]Container{}}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			out.Containers[list[i].Name] = Container{}
		}
	}
	if parts.Layers {
		if err := m.layers(ctx, pod, out.Containers); err != nil {
			return out, err
		}
	}
	if !parts.Files {
		return out, nil
	}
	for name, c := range out.Containers {
		var err error
		c.Logs, err = m.logs(ctx, pod, name, enough)
		out.Containers[name] = c
		if err != nil {
			return out, err
		}
	}
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if !OnDisk(v) {
			continue
		}
		var err error
		if out.Volumes[v.Name], err = m.Volume(ctx, pod, v.Name, enough); err != nil {
			return out, err
		}
	}
	return out, nil
}

// layers adds what the newest instance of each container has written.
func (m Meter) layers(ctx context.Context, pod *corev1.Pod, into map[string]Container) error {
	found, err := m.newestLayers(ctx, pod)
	for name, usage := range found {
		if c, known := into[name]; known {
			c.Layer = usage
			into[name] = c
		}
	}
	return err
}

// newestLayers returns, by container, what the newest instance has written; containers that never started have
// none.
func (m Meter) newestLayers(ctx context.Context, pod *corev1.Pod) (map[string]Usage, error) {
	all, err := m.Layers.Layers(ctx, string(pod.UID))
	if err != nil {
		return nil, fmt.Errorf("measuring what containers write: %w", err)
	}
	found, newest := map[string]Usage{}, map[string]uint32{}
	for _, layer := range all {
		if layer.Attempt >= newest[layer.Container] {
			newest[layer.Container] = layer.Attempt
			found[layer.Container] = Usage{Bytes: layer.Bytes, Inodes: layer.Inodes}
		}
	}
	return found, nil
}
