package e2e

import (
	"testing"

	"keelson.dev/test/mesh"
	"keelson.dev/test/mesh/processes"
	"keelson.dev/test/scenario"
)

// TestADaemonDiesBetweenAWriteAndItsMemoryOfIt ends each daemon by SIGKILL right after an external write, at the
// instruction where it knows least about what it has done. Started again, it neither repeats nor forgets: the rollout
// ends with exactly the Pods that were asked for.
//
// SAF-197 SAF-198
func TestADaemonDiesBetweenAWriteAndItsMemoryOfIt(t *testing.T) {
	m := processes.New(t, 1)
	for _, test := range []struct {
		daemon           mesh.Daemon
		failpoint        string
		from, to         int32
		fromImage, image string
	}{
		{mesh.WorkloadControllers, "workload-controllers/pod.create.after=1*off->crash", 1, 5, scenario.HelloV1,
			scenario.HelloV1},
		{mesh.WorkloadControllers, "workload-controllers/replicaset.create.after=crash", 3, 3, scenario.HelloV1,
			scenario.HelloV2},
		{mesh.WorkloadControllers, "workload-controllers/pod.delete.after=crash", 5, 2, scenario.HelloV1,
			scenario.HelloV1},
		{mesh.Scheduler, "scheduler/bind.after=1*off->crash", 1, 5, scenario.HelloV1, scenario.HelloV1},
		{mesh.NodeAgent, "nodeagent/sandbox.create.after=crash", 1, 3, scenario.HelloV1, scenario.HelloV1},
		{mesh.NodeAgent, "nodeagent/container.start.after=crash", 1, 3, scenario.HelloV1, scenario.HelloV1},
		{mesh.NodeAgent, "nodeagent/pod.delete.before=crash", 4, 2, scenario.HelloV1, scenario.HelloV1},
		{mesh.PodGC, "podgc/dependent.delete.after=crash", 2, 0, scenario.HelloV1, ""},
		{mesh.APIServer, "apiserver/store.create.after=3*off->crash", 1, 5, scenario.HelloV1, scenario.HelloV1},
	} {
		t.Run(test.failpoint, func(t *testing.T) {
			w := scenario.In(t, m)
			w.Deploy(test.from, test.fromImage)
			m.Kill(t, test.daemon)
			doomed := m.StartArmed(t, test.daemon, test.failpoint)
			// The apiserver may not listen yet, or die before it has answered kubectl, so what is asked for is asked
			// again.
			w.Await("the failpoint to end "+doomed.Name, func() string {
				if complaint := w.TryDeploy(test.to, test.image); doomed.Alive() {
					return "it is alive; kubectl says: " + complaint
				}
				return ""
			})
			m.Start(t, test.daemon)
			w.Deploy(test.to, test.image)
		})
	}
	t.Run("NothingIsLeft", func(t *testing.T) { expectNothingLeft(t, m) })
}
