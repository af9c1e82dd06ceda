package e2e

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"keelson.dev/kit/procmesh"
	"keelson.dev/test/mesh"
	"keelson.dev/test/mesh/processes"
)

// takeover is how soon a standby must lead after its leader was killed.
const takeover = 20 * time.Second

// TestStandbyTakesOver kills the leader of each daemon that is elected while a second copy of it runs. The copy holds every
// Lease of the daemon in time.
func TestStandbyTakesOver(t *testing.T) {
	m := processes.New(t, 0)
	client, err := kubernetes.NewForConfig(m.Admin())
	if err != nil {
		t.Fatal(err)
	}
	leases := map[mesh.Daemon][]string{
		mesh.Scheduler:           {"scheduler.default-scheduler"},
		mesh.WorkloadControllers: {"workload-controllers.deployment", "workload-controllers.replicaset", "workload-controllers.serviceaccount", "workload-controllers.rootca"},
		mesh.PodGC:               {"podgc.namespace", "podgc.owners", "podgc.podgc"},
	}
	holders := map[string]string{}
	for d, names := range leases {
		for _, name := range names {
			holders[name] = awaitHolder(t, client, name, "", time.Minute)
		}
		m.StartCopy(t, d)
	}
	// The copies must have seen the leaders renew before they can miss them.
	time.Sleep(5 * time.Second)
	for d := range leases {
		if err := procmesh.Kill(context.Background(), m.Of(t, d)[0]); err != nil {
			t.Fatalf("killing %s: %v", d, err)
		}
	}
	killed := time.Now()
	for _, names := range leases {
		for _, name := range names {
			awaitHolder(t, client, name, holders[name], takeover-time.Since(killed))
			t.Logf("%s was taken over %v after the kill", name, time.Since(killed).Round(time.Millisecond))
		}
	}
}

// awaitHolder returns who holds the Lease, as soon as it is somebody else than before.
func awaitHolder(t *testing.T, client kubernetes.Interface, name, before string, patience time.Duration) string {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		lease, err := client.CoordinationV1().Leases("kube-system").Get(t.Context(), name, metav1.GetOptions{})
		if err != nil || lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
			continue
		}
		if holder := *lease.Spec.HolderIdentity; holder != before {
			return holder
		}
	}
	t.Fatalf("nobody but %q holds %s after %v", before, name, patience)
	return ""
}
