package app

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/nodeagent/internal/cpupin"
	"keelson.dev/services/nodeagent/internal/podstate"
)

// openCPUs loads the CPUs that Pods have exclusively.
func (a *agent) openCPUs() (err error) {
	kept := a.facts.Reserved[corev1.ResourceCPU]
	a.cpus, err = cpupin.Open(cpupin.Config{
		Settings: a.CPUs, Root: a.RootDir, Log: a.Log, Machine: a.machine,
		Named: a.Reserved.Named(), ReservedMilli: kept.MilliValue(),
		Running: a.runningContainers, Update: a.runtime.UpdateContainer,
		Refuse: func(uid types.UID, why podstate.Outcome) { a.pool.Evict(uid, why) },
	})
	return err
}

// machine reads the topology of the CPUs. The agent must be allowed to run on all of them: the Node reports those
// on which the agent may run.
func (a *agent) machine() (cpupin.Machine, error) {
	machine, err := cpupin.ReadMachine("/sys")
	if has := a.facts.MilliCPU / 1000; err == nil && int64(len(machine)) != has {
		return nil, fmt.Errorf("--cpu-manager-policy: static needs an agent that may run on all %d cpus of the "+
			"machine; this one may on %d", len(machine), has)
	}
	return machine, err
}

// activePods returns the Pods that hold resources of the node.
func (a *agent) activePods() []*corev1.Pod { return slices.Collect(maps.Keys(a.pool.Active())) }

func (a *agent) ownCPUs(uid types.UID, container string) bool {
	_, own := a.cpus.Container(uid, container)
	return own
}

func (a *agent) runningContainers() []cpupin.Running {
	running := a.pool.Running()
	all := make([]cpupin.Running, len(running))
	for i, r := range running {
		all[i] = cpupin.Running{Pod: r.Pod.UID, Name: r.Name, ID: r.ID}
	}
	return all
}
