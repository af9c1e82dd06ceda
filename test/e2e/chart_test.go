package e2e

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/test/mesh"
	"keelson.dev/test/mesh/processes"
	"keelson.dev/test/scenario"
)

const (
	// ofTheChart selects everything that the chart makes.
	ofTheChart = "app.kubernetes.io/part-of=keelson"
	system     = metav1.NamespaceSystem
)

// signing is the Lease of who signs certificates. The chart's copies do not: they have no key.
const signing = "workload-controllers.csrsigning"

// TestHelmChartTakesOver installs the chart on a mesh, whose Leases the copies that keel started hand over to the Pods,
// works with these, and takes the chart away again, after which the copies lead as before.
func TestHelmChartTakesOver(t *testing.T) {
	m := processes.New(t, 1, processes.WithChart())
	w := scenario.In(t, m)
	awaitLeaders(w, "keel's copies", func(d mesh.Daemon, _, holder string) bool { return !inPod(d, holder) })
	// Without a range there is no nodeipam. The node has its share of keel's range, and keeps it.
	release(w, "install", "keelson", chart(t), "--set",
		"workload-controllers.extraArgs[0]=--cluster-cidr="+m.PodRange(t).String())
	awaitLeaders(w, "the chart's Pods", func(d mesh.Daemon, lease, holder string) bool {
		return inPod(d, holder) != (lease == signing)
	})
	if out, stderr, err := helm(w, m.Kubeconfig(), "test", "keelson", "--namespace", system); err != nil {
		t.Errorf("helm test: %v\n%s%s", err, out, stderr)
	}
	w.Deploy(3, scenario.HelloV1)
	w.Deploy(3, scenario.HelloV2)
	release(w, "upgrade", "keelson", chart(t), "--reuse-values", "--set", "scheduler.replicas=2")
	awaitReady(w, "keelson-"+string(mesh.Scheduler), 2)
	shareControllers(w)

	uninstall(w, "keelson", "jobs")
	if complaint := w.TryDeploy(2, scenario.HelloV1); complaint != "" {
		t.Fatal(complaint)
	}
	awaitLeaders(w, "keel's copies", func(d mesh.Daemon, _, holder string) bool { return !inPod(d, holder) })
	w.Deploy(2, scenario.HelloV1)
	awaitGone(w)
}

// shareControllers gives two controllers a release of their own, and upgrades that without touching the other.
func shareControllers(w *scenario.World) {
	w.Helper()
	const controllers = "workload-controllers.controllers="
	release(w, "upgrade", "keelson", chart(w), "--reuse-values", "--set", controllers+"{*,-job,-cronjob}")
	release(w, "install", "jobs", chart(w), "--set", "scheduler.enabled=false,podgc.enabled=false",
		"--set", controllers+"{job,cronjob}")
	awaitLeaders(w, "two releases", func(d mesh.Daemon, lease, holder string) bool {
		switch lease {
		case signing:
			return !inPod(d, holder)
		case "workload-controllers.job", "workload-controllers.cronjob":
			return strings.HasPrefix(holder, "jobs-workload-controllers-")
		}
		return inPod(d, holder)
	})
	awaitReady(w, "keelson-"+string(mesh.WorkloadControllers), 2)
	before := podsOf(w, "keelson")
	release(w, "upgrade", "jobs", chart(w), "--reuse-values", "--set", "workload-controllers.logLevel=debug")
	if after := podsOf(w, "keelson"); after != before {
		w.Errorf("an upgrade of one release left the other with %s, it had %s", after, before)
	}
}

// podsOf names a release's Pods.
func podsOf(w *scenario.World, release string) string {
	w.Helper()
	return w.Kubectl("--namespace", system, "get", "pods", "--selector", "app.kubernetes.io/instance="+release,
		"--sort-by=metadata.name", "--output", "name")
}

// inPod reports whether the holder of a Lease of a daemon is a Pod of the chart.
func inPod(d mesh.Daemon, holder string) bool {
	return strings.HasPrefix(holder, "keelson-"+string(d)+"-")
}

// awaitLeaders waits until each Lease has the right holder.
func awaitLeaders(w *scenario.World, who string, right func(d mesh.Daemon, lease, holder string) bool) {
	w.Helper()
	began := time.Now()
	for d, leases := range elected {
		for _, lease := range leases {
			awaitLease(w, w.Client, lease, 2*takeover, func(l *coordinationv1.Lease) bool {
				holder := ptr.Deref(l.Spec.HolderIdentity, "")
				return holder != "" && right(d, lease, holder)
			})
		}
	}
	w.Logf("%s lead after %v", who, time.Since(began).Round(time.Second))
}

// TestHelmChartClusterDNS installs cluster DNS alone, on a mesh whose Pods ask where it will be.
func TestHelmChartClusterDNS(t *testing.T) {
	services := processes.FreeRange(t)
	base := services.Addr().As4()
	address := netip.AddrFrom4([4]byte{base[0], base[1], 0, 10}).String()
	m := processes.New(t, 1, "--dns="+address, "--service-cidr="+services.String(),
		processes.WithChart())
	w := scenario.In(t, m)
	release(w, "install", "keelson", chart(t), "--set", "coredns.enabled=true,coredns.replicas=1",
		"--set", "coredns.clusterIP="+address,
		"--set", "scheduler.enabled=false,workload-controllers.enabled=false,podgc.enabled=false")
	t.Run("names", func(t *testing.T) { scenario.DNSRecords(t, m) })
	release(w, "upgrade", "keelson", chart(t), "--reuse-values", "--set", "coredns.replicas=2")
	awaitReady(w, "coredns", 2)
	t.Run("names after an upgrade", func(t *testing.T) { scenario.InitContainersWaitForDNS(t, m) })
	uninstall(w, "keelson")
	awaitGone(w)
}

// release runs helm until all that it makes is ready.
func release(w *scenario.World, args ...string) {
	w.Helper()
	if said, err := helmIn(w, system, args...); err != nil {
		describeChart(w)
		w.Fatalf("helm %s: %v\n%s", strings.Join(args, " "), err, said)
	}
}

// helmIn runs helm in a namespace until all that it makes is ready and all that it takes away is gone.
func helmIn(w *scenario.World, namespace string, args ...string) (said string, err error) {
	w.Helper()
	args = append(args, "--namespace", namespace, "--wait", "--timeout", "3m")
	out, stderr, err := helm(w, w.Mesh.Kubeconfig(), args...)
	return out + stderr, err
}

// uninstall takes releases of the chart away. Their Pods go when a podgc collects them.
func uninstall(w *scenario.World, releases ...string) {
	w.Helper()
	args := append([]string{"uninstall", "--namespace", system}, releases...)
	if out, stderr, err := helm(w, w.Mesh.Kubeconfig(), args...); err != nil {
		w.Fatalf("helm uninstall: %v\n%s%s", err, out, stderr)
	}
}

// awaitGone waits until nothing of the chart is left.
func awaitGone(w *scenario.World) {
	w.Helper()
	w.Await("nothing of the chart", func() scenario.Answer { return scenario.Left(leftOfChart(w)) })
}

// chart is the chart's folder.
func chart(t testing.TB) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", "..", "deploy", "helm", "keelson"))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// helm runs the unmodified helm.
func helm(t testing.TB, kubeconfig string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), filepath.Join(scenario.BinDir(), "helm"), args...)
	home := t.TempDir()
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "HOME="+home,
		"HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	var out, complaints bytes.Buffer
	command.Stdout, command.Stderr = &out, &complaints
	err = command.Run()
	if command.ProcessState == nil {
		t.Fatalf("helm could not be run: %v", err)
	}
	return out.String(), complaints.String(), err
}

// awaitReady waits until exactly that many Pods of the name are there and ready.
func awaitReady(w *scenario.World, name string, want int) {
	w.Helper()
	w.Await(fmt.Sprintf("%d ready Pods of %s", want, name), func() scenario.Answer {
		pods, err := w.Client.CoreV1().Pods(system).List(w.Context(),
			metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=" + name})
		if err != nil {
			return scenario.Saw(err.Error())
		}
		ready := 0
		for i := range pods.Items {
			if slices.ContainsFunc(pods.Items[i].Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
			}) {
				ready++
			}
		}
		if ready == want && len(pods.Items) == want {
			return ""
		}
		return scenario.Sawf("%d Pods, %d ready", len(pods.Items), ready)
	})
}

// leftOfChart names what the chart made and is still there.
func leftOfChart(w *scenario.World) string {
	r := w.TryKubectl("", "get", "deployments,replicasets,pods,serviceaccounts,clusterroles,clusterrolebindings,"+
		"secrets,configmaps,services,endpointslices,poddisruptionbudgets", "--all-namespaces", "--selector", ofTheChart,
		"--output", "name")
	releases := w.TryKubectl("", "get", "secrets", "--all-namespaces", "--selector", "owner=helm", "--output", "name")
	return r.Stdout + releases.Stdout + problem(r) + problem(releases)
}

// problem leaves out that kubectl found nothing.
func problem(r scenario.Result) string {
	if r.Code == 0 {
		return ""
	}
	return r.Complaint()
}

// describeChart logs what a person would look at where the chart's Pods do not get ready.
func describeChart(w *scenario.World) {
	w.Helper()
	for _, args := range [][]string{
		{"describe", "pods", "--selector", ofTheChart}, {"logs", "--selector", ofTheChart, "--tail=5", "--prefix"},
	} {
		r := w.TryKubectl("", append([]string{"--namespace", system}, args...)...)
		w.Log(r.Stdout + r.Stderr)
	}
}
