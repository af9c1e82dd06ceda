package e2e

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/subprocess"
	podgc "keelson.dev/services/podgc/inproc"
	workloads "keelson.dev/services/workload-controllers/inproc"
	"keelson.dev/test/mesh"
	"keelson.dev/test/mesh/processes"
)

// takeover bounds the wait for a standby to lead. How soon it must is held in package election, where time does not
// depend on the machine: on one that is slow, Leases last up to four times as long.
const takeover = 2 * time.Minute

// elected names all Leases of each daemon that may have replicas.
var elected = map[mesh.Daemon][]string{
	mesh.Scheduler:           roles(mesh.Scheduler, "default-scheduler"),
	mesh.WorkloadControllers: roles(mesh.WorkloadControllers, workloads.Controllers()...),
	mesh.PodGC:               roles(mesh.PodGC, podgc.Collectors()...),
}

func roles(d mesh.Daemon, names ...string) (leases []string) {
	for _, name := range names {
		leases = append(leases, string(d)+"."+name)
	}
	return leases
}

// TestStandbyTakesOver kills the leader of each daemon that is elected while a second copy of it runs. The copy holds
// every Lease of the daemon soon.
func TestStandbyTakesOver(t *testing.T) {
	m := processes.Shared(t, 0)
	client, err := kubernetes.NewForConfig(m.Admin())
	if err != nil {
		t.Fatal(err)
	}
	holders := map[string]string{}
	for d, names := range elected {
		for _, name := range names {
			holders[name] = awaitHolder(t, client, name, "", time.Minute)
		}
		m.StartCopy(t, d)
	}
	// The copies must have seen the leaders renew before they can miss them.
	awaitRenewals(t, client, 3, slices.Concat(slices.Collect(maps.Values(elected))...)...)
	for d := range elected {
		if err := subprocess.Kill(context.Background(), m.Of(t, d)[0]); err != nil {
			t.Fatalf("killing %s: %v", d, err)
		}
	}
	killed := time.Now()
	for _, names := range elected {
		for _, name := range names {
			awaitHolder(t, client, name, holders[name], takeover)
			t.Logf("%s was taken over %v after the kill", name, time.Since(killed).Round(time.Millisecond))
		}
	}
}

// awaitHolder waits until the Lease has another holder than before, and returns it.
func awaitHolder(t *testing.T, client kubernetes.Interface, name, before string, patience time.Duration) string {
	t.Helper()
	holder := ""
	awaitLease(t, client, name, patience, func(lease *coordinationv1.Lease) bool {
		holder = ptr.Deref(lease.Spec.HolderIdentity, "")
		return holder != "" && holder != before
	})
	return holder
}

// awaitRenewals waits until each of the Leases was renewed that often.
func awaitRenewals(t *testing.T, client kubernetes.Interface, renewals int, names ...string) {
	t.Helper()
	seen := map[string]map[time.Time]bool{}
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 4*time.Minute, true,
		func(ctx context.Context) (bool, error) {
			leases, err := client.CoordinationV1().Leases("kube-system").List(ctx, metav1.ListOptions{})
			if err != nil {
				return false, err
			}
			for _, lease := range leases.Items {
				if lease.Spec.RenewTime != nil {
					if seen[lease.Name] == nil {
						seen[lease.Name] = map[time.Time]bool{}
					}
					seen[lease.Name][lease.Spec.RenewTime.Time] = true
				}
			}
			return !slices.ContainsFunc(names, func(name string) bool { return len(seen[name]) <= renewals }), nil
		})
	if err != nil {
		t.Fatalf("waiting for %d renewals of each Lease: %v", renewals, err)
	}
}

func awaitLease(t testing.TB, client kubernetes.Interface, name string, patience time.Duration,
	done func(*coordinationv1.Lease) bool) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, patience, true,
		func(ctx context.Context) (bool, error) {
			var lease *coordinationv1.Lease
			lease, last = client.CoordinationV1().Leases("kube-system").Get(ctx, name, metav1.GetOptions{})
			return last == nil && done(lease), nil
		})
	if err != nil {
		t.Fatalf("waiting for Lease %s: %v, %v", name, err, last)
	}
}
