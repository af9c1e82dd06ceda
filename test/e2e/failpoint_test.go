package e2e

import (
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/subprocess"
	"keelson.dev/test/mesh"
	"keelson.dev/test/mesh/processes"
	"keelson.dev/test/scenario"
)

// TestDaemonCrashAfterWrite ends each daemon by SIGKILL right after an external write, at the
// instruction where it knows least about what it has done. Started again, it neither repeats nor forgets: the rollout
// ends with exactly the Pods that were asked for.
//
// SAF-197 SAF-198
func TestDaemonCrashAfterWrite(t *testing.T) {
	m := processes.New(t, 1)
	deploymentsThroughCrashes(t, m)
	jobsThroughCrashes(t, m)
	for _, s := range scenario.Crashed {
		t.Run(s.Name, func(t *testing.T) {
			s.Run(scenario.In(t, m), func(w *scenario.World, d mesh.Daemon, failpoint string, ask func()) {
				var once sync.Once
				die(w, m, d, failpoint, func() string { once.Do(ask); return "" })
			})
		})
	}
	leakShim(t, m)
	t.Run("NothingIsLeft", func(t *testing.T) { expectNothingLeft(t, m) })
}

// die ends a daemon at the failpoint and starts it again.
func die(w *scenario.World, m *processes.Mesh, d mesh.Daemon, failpoint string, ask func() string) {
	w.Helper()
	killAt(w, m, d, failpoint, ask)
	m.Start(w, d)
}

// killAt ends a daemon, and lets it end once more at the failpoint while something is asked for again and again.
func killAt(w *scenario.World, m *processes.Mesh, d mesh.Daemon, failpoint string, ask func() string) {
	w.Helper()
	m.Kill(w, d)
	giveUp(w, d)
	doomed := m.StartArmed(w, d, failpoint)
	w.Await("the failpoint to end "+doomed.Name, func() scenario.Answer {
		if complaint := ask(); doomed.Alive() {
			return scenario.Sawf("it is alive; kubectl says: %s", complaint)
		}
		return ""
	})
	giveUp(w, d)
}

// awaitEnd waits until a process that was started with a failpoint has died of it.
func awaitEnd(w *scenario.World, doomed subprocess.Process) {
	w.Helper()
	w.Await("the failpoint to end "+doomed.Name, func() scenario.Answer {
		if doomed.Alive() {
			return "it is alive"
		}
		return ""
	})
}

// giveUp frees the Leases of a daemon that was killed. That they end by themselves is shown elsewhere.
func giveUp(w *scenario.World, d mesh.Daemon) {
	w.Helper()
	if d == mesh.APIServer {
		return
	}
	leases := w.Client.CoordinationV1().Leases("kube-system")
	list, err := leases.List(w.Context(), metav1.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
	// The last renewal of who was killed may be stored only now.
	nobody := []byte(`{"spec":{"holderIdentity":null}}`)
	for i := range list.Items {
		name := list.Items[i].Name
		if !strings.HasPrefix(name, string(d)+".") {
			continue
		}
		if _, err := leases.Patch(w.Context(), name, types.MergePatchType, nobody, metav1.PatchOptions{}); err != nil {
			w.Fatal(err)
		}
	}
}

func deploymentsThroughCrashes(t *testing.T, m *processes.Mesh) {
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
			// The apiserver may not listen yet, or die before it has answered kubectl, so the request is repeated.
			die(w, m, test.daemon, test.failpoint, func() string { return w.TryDeploy(test.to, test.image) })
			w.Deploy(test.to, test.image)
		})
	}
}
