package cpupin

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/types"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"keelson.dev/services/nodeagent/internal/runtime"
)

// Running is a running instance of a container.
type Running struct {
	Pod      types.UID
	Name, ID string
}

// Updater changes the limits of a running instance; UpdateContainer of a runtime.Runtime is one.
type Updater func(ctx context.Context, id string, limits *cri.LinuxContainerResources) error

// Run moves running instances to their desired CPUs, until ctx ends: those that share leave the CPUs that a Pod
// gets, and return when that Pod is gone. An agent that has just started does not know on which CPUs instances run,
// and updates each in the runtime.
func (p *Pins) Run(ctx context.Context) {
	if !p.IsStatic() {
		return
	}
	told := map[string]string{}
	for {
		told = p.follow(ctx, told)
		select {
		case <-ctx.Done():
			return
		case <-p.changed:
		case <-time.After(p.Every):
		}
	}
}

// follow updates the instances whose CPUs have changed, and returns what the runtime was given for each running
// one.
func (p *Pins) follow(ctx context.Context, told map[string]string) map[string]string {
	var all []Instance
	next := map[string]string{}
	for _, r := range p.Running() {
		cpus, _ := p.Container(r.Pod, r.Name)
		all = append(all, Instance{ID: r.ID, CPUs: cpus})
		if has, ok := told[r.ID]; ok {
			next[r.ID] = has
		}
	}
	for _, i := range untold(all, told) {
		err := p.Update(ctx, i.ID, &cri.LinuxContainerResources{CpusetCpus: i.CPUs})
		switch {
		case err == nil:
			next[i.ID] = i.CPUs
		case errors.Is(err, runtime.ErrNotFound) || ctx.Err() != nil: // it has ended meanwhile
		default:
			p.Log.Warn("a container stays on other cpus than it shall have, trying again",
				zap.String("container", i.ID), zap.String("cpus", i.CPUs), zap.Error(err))
		}
	}
	return next
}
