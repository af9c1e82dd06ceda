package app

import (
	"context"
	"fmt"
	"sync"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/nodeagent/internal/diskusage"
	"keelson.dev/services/nodeagent/internal/evict"
	"keelson.dev/services/nodeagent/internal/podstate"
	"keelson.dev/services/nodeagent/internal/pressure"
	"keelson.dev/services/nodeagent/internal/qos"
	"keelson.dev/services/nodeagent/internal/runtime"
)

// imageFolder finds the file system of the images, once.
type imageFolder struct {
	runtime runtime.Images
	// otherwise is the images' folder if the runtime does not report it.
	otherwise string

	mu  sync.Mutex // guards dir
	dir string
}

func (f *imageFolder) find(ctx context.Context) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.dir != "" {
		return f.dir, nil
	}
	fs, err := f.ask(ctx)
	if err != nil {
		return "", err
	}
	f.dir = fs.Dir
	return f.dir, nil
}

// ask asks the runtime, which also reports what its images use.
func (f *imageFolder) ask(ctx context.Context) (runtime.ImageFs, error) {
	fs, err := f.runtime.ImageFs(ctx)
	if err == nil && fs.Dir == "" {
		fs.Dir = f.otherwise
	}
	return fs, err
}

// standing returns the reader of the machine's signals.
func (a *agent) standing() *pressure.Host {
	limits := a.facts.PodLimits(a.Reserved.HoldsPods())
	return &pressure.Host{Proc: "/proc", NodeFs: a.RootDir, ImageFs: a.imageFs.find, Pods: a.cgroups.NodeUsage,
		PodMemory: limits.Memory().Value(), MaxPIDs: a.facts.MaxPIDs}
}

func (a *agent) diskMeter() diskusage.Meter {
	return diskusage.Meter{Files: a.files, Layers: a.runtime}
}

func (a *agent) pressureConfig() pressure.Config {
	host := a.standing()
	meter := pressure.Meter{Cgroups: a.cgroups, Disk: a.diskMeter(), ImagesApart: host.ImagesApart}
	return pressure.Config{
		Log: a.Log, Rules: a.rules, Host: host, Changed: a.node.Look, Pods: a.pods, Measure: meter.Measure,
		Stored:  func() []corev1.NodeCondition { return a.node.Current().Status.Conditions },
		Reclaim: a.reclaim, Evict: a.pool.Evict, Record: a.recordNode, Evicted: a.counts.ousted.Evicted,
	}
}

// pods returns the node's Pods as eviction sees them.
func (a *agent) pods() []pressure.Pod {
	views := a.pool.Views()
	all := make([]pressure.Pod, 0, len(views))
	for i := range views {
		v := &views[i]
		all = append(all, pressure.Pod{
			Pod: v.Pod, Static: a.static.Runs(v.Pod.UID), Ending: v.Removed || v.Plan.Outcome != nil,
			Ended:   v.Plan.Goal != podstate.Run && v.Plan.Stopped && len(v.Ops) == 0,
			Running: v.Containers,
		})
	}
	return all
}

// reclaim performs a step that may spare Pods from eviction.
func (a *agent) reclaim(ctx context.Context, step pressure.Step) error {
	switch step {
	case pressure.RemoveDeadContainers:
		return a.garbage.Containers(ctx)
	case pressure.RemoveUnusedImages:
		return a.garbage.UnusedImages(ctx)
	}
	return fmt.Errorf("step %q is not known", step)
}

func (a *agent) evictConfig() evict.Config {
	host := a.standing()
	return evict.Config{Log: a.Log, Pods: a.pool.Pods, Evict: a.pool.Evict, Meter: a.diskMeter(),
		IsCritical: func(pod *corev1.Pod) bool { return qos.IsCritical(pod, a.static.Runs(pod.UID)) },
		Parts: func(ctx context.Context) diskusage.Parts {
			apart, err := host.ImagesApart(ctx)
			if err != nil {
				a.Log.Warn("finding out where images lie failed", zap.Error(err))
			}
			return diskusage.Parts{Files: true, Layers: err == nil && !apart}
		}}
}
