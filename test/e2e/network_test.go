package e2e

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/nettest"
	"keelson.dev/kit/subprocess"
	"keelson.dev/test/mesh"
	"keelson.dev/test/mesh/processes"
	"keelson.dev/test/scenario"
)

// TestServiceNetworking runs the scenarios of Services and names on a mesh with cluster DNS.
func TestServiceNetworking(t *testing.T) {
	m := processes.New(t, 2, processes.WithDNS)
	fence(t, m)
	leaked := leakAddress(t, m)
	t.Run("LoadBalancers", func(t *testing.T) { tellsLoadBalancers(t, m) })
	t.Run("Explained", func(t *testing.T) { explainsServices(t, m) })
	scenario.RunAll(t, m, scenario.Networked)
	t.Run("DisruptionBudgetBlocksDrain", func(t *testing.T) { scenario.DisruptionBudgetBlocksDrain(t, m) })
	t.Run("ExternalClientTraffic", func(t *testing.T) { fromOutside(t, m) })
	t.Run("APIServerFailover", func(t *testing.T) {
		scenario.APIServerFailover(t, m,
			func(t testing.TB, node, ip string) func() { return joinAPIServer(t, m, node, ip) })
	})
	t.Run("KillsUnderLoad", func(t *testing.T) {
		scenario.KillsUnderLoad(t, m, func(t testing.TB, pods ...types.UID) int { return killCoreDNS(t, m, pods) })
	})
	m.Restart(t, mesh.PodGC, patience...)
	t.Run("LinkFailure", func(t *testing.T) {
		scenario.LinkFailure(t, m, func(t testing.TB) { setLink(t, m, 2, false) },
			func(t testing.TB) { setLink(t, m, 2, true) })
	})
	t.Run("JoinsAnew", func(t *testing.T) { joinsAnew(t, m) })
	leaked.awaitFree() // by now it is older than the grace that the apiserver gives it
}

// tellsLoadBalancers asks each node, as load balancers do, whether it takes new connections, before, while and after
// the cluster autoscaler means to take the first one away.
func tellsLoadBalancers(t *testing.T, m *processes.Mesh) {
	w := scenario.In(t, m)
	expect := func(when string, want ...int) {
		t.Helper()
		w.Await("what load balancers are told "+when, func() scenario.Answer {
			var got []int
			for _, agent := range m.Of(t, mesh.NodeAgent) {
				address := processes.Argument(agent, "--service-proxy-health-address")
				answer, err := http.Get("http://" + address + "/healthz")
				if err != nil {
					return scenario.Saw(err.Error())
				}
				_ = answer.Body.Close()
				got = append(got, answer.StatusCode)
			}
			if slices.Equal(got, want) {
				return ""
			}
			return scenario.Sawf("%v", got)
		})
	}
	expect("of nodes that work", http.StatusOK, http.StatusOK)
	const taint = "ToBeDeletedByClusterAutoscaler"
	w.Kubectl("taint", "node", m.Nodes()[0], taint+"=1:NoSchedule")
	expect("of one that is going", http.StatusServiceUnavailable, http.StatusOK)
	w.Kubectl("taint", "node", m.Nodes()[0], taint+"-")
	expect("of one that stays after all", http.StatusOK, http.StatusOK)
}

// lacking is a Pod that is not ready, behind a Service one port of which leads to a port that the Pod does not name.
const lacking = `apiVersion: v1
kind: Service
metadata: {name: lacking}
spec:
  selector: {app: lacking}
  ports: [{name: http, port: 80, targetPort: 8080}, {name: admin, port: 90, targetPort: admin}]
---
apiVersion: v1
kind: Pod
metadata: {name: unready, labels: {app: lacking}}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: ` + scenario.Server + `
    readinessProbe: {httpGet: {path: /nosuch, port: 8080}, periodSeconds: 1}
`

// explainsServices asks keel why a Service has no endpoint, and what the nodes have of it, before and after it has one.
func explainsServices(t *testing.T, m *processes.Mesh) {
	w := scenario.In(t, m)
	w.KubectlWith(lacking, "apply", "-f", "-")
	expect := func(wants ...string) {
		t.Helper()
		w.Await("keel explain service lacking", func() scenario.Answer {
			said, err := m.Keel(t.Context(), "explain", "-n", w.Namespace, "service", "lacking")
			if err != nil {
				return scenario.Saw(said + err.Error())
			}
			for _, want := range wants {
				if !regexp.MustCompile(want).MatchString(said) {
					return scenario.Sawf("no %q in\n%s", want, said)
				}
			}
			return ""
		})
	}
	unnamed := `waits for a TCP port named "admin", where port 90 leads to, in 1 Pod: unready`
	since := strings.TrimSpace(w.Kubectl("wait", "--for=jsonpath={.status.podIP}", "pod/unready", "--timeout=60s",
		"--output=jsonpath={.status.conditions[?(@.type=='Ready')].lastTransitionTime}"))
	expect("waits for 1 Pod to be ready: unready", regexp.QuoteMeta(since), unnamed,
		"node-1: has programmed it since .*: http 80/TCP .* is refused, there is no endpoint",
		"node-2: has programmed it since .*: http 80/TCP .* is refused, there is no endpoint")
	w.Kubectl("patch", "service", "lacking", "-p", `{"spec":{"publishNotReadyAddresses":true}}`)
	address := regexp.QuoteMeta(w.Pods("app=lacking")[0].Status.PodIP)
	expect(unnamed, "node-1: has programmed it since .*: http 80/TCP .* to "+address+":8080",
		"node-2: has programmed it since .*: http 80/TCP .* to "+address+":8080")
}

// fromOutside has a machine of its own, which knows no way but the first node, ask Services.
func fromOutside(t *testing.T, m *processes.Mesh) {
	address, gateway := netip.MustParsePrefix("198.51.100.2/30"), netip.MustParseAddr("198.51.100.1")
	outsider := nettest.NewPeer(t, linkPrefix(m)+"o", "", address, gateway)
	dial := func(ctx context.Context, network, target string) (conn net.Conn, err error) {
		outsider.Do(func() { conn, err = (&net.Dialer{Timeout: time.Second}).DialContext(ctx, network, target) })
		return conn, err
	}
	transport := &http.Transport{DialContext: dial, DisableKeepAlives: true}
	client := http.Client{Timeout: 5 * time.Second, Transport: transport}
	scenario.ExternalClientTraffic(t, m, address.Addr().String(), func(url string) (string, error) {
		answer, err := client.Get(url)
		if err != nil {
			return "", err
		}
		defer func() { _ = answer.Body.Close() }()
		said, err := io.ReadAll(answer.Body)
		return string(said), err
	})
}

// killCoreDNS kills what runs of it in these Pods of the mesh, and says how many processes that were.
func killCoreDNS(t testing.TB, m *processes.Mesh, pods []types.UID) (killed int) {
	t.Helper()
	names, err := filepath.Glob("/proc/[0-9]*/comm")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range names {
		name, err := os.ReadFile(file)
		if err != nil || string(name) != "coredns\n" {
			continue
		}
		process := filepath.Dir(file)
		groups, err := os.ReadFile(filepath.Join(process, "cgroup"))
		if err != nil || !strings.Contains(string(groups), filepath.Dir(m.CgroupRoot())+"/") ||
			!slices.ContainsFunc(pods, func(pod types.UID) bool {
				return strings.Contains(string(groups), string(pod))
			}) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(process))
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Fatalf("killing CoreDNS: %v", err)
		}
		killed++
	}
	return killed
}

// joinAPIServer starts a second apiserver in the network of a node, on the store of the first, and returns how it is
// killed.
func joinAPIServer(t testing.TB, m *processes.Mesh, node, ip string) (kill func()) {
	t.Helper()
	store := "unix://" + filepath.Join(processes.Argument(m.Of(t, mesh.APIServer)[0], "--data-dir"), "etcd.sock")
	second := m.StartCopyOn(t, mesh.APIServer, node, "--etcd-servers="+store, "--advertise-address="+ip)
	return func() {
		t.Helper()
		if err := subprocess.Kill(context.Background(), second); err != nil {
			t.Fatalf("killing the second apiserver: %v", err)
		}
	}
}

// setLink takes the machine's end of a node's link down, or up.
func setLink(t testing.TB, m *processes.Mesh, node int, up bool) {
	t.Helper()
	link := linkPrefix(m) + "v" + strconv.Itoa(node)
	if err := setFlags(link, up); err != nil {
		t.Fatalf("switching %s: %v", link, err)
	}
}

func setFlags(link string, up bool) error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(socket) }()
	request, err := unix.NewIfreq(link)
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(socket, unix.SIOCGIFFLAGS, request); err != nil {
		return err
	}
	flags := request.Uint16() &^ unix.IFF_UP
	if up {
		flags |= unix.IFF_UP
	}
	request.SetUint16(flags)
	return unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, request)
}
