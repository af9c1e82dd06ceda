package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"keelson.dev/kit/subprocess"
	"keelson.dev/test/mesh"
	"keelson.dev/test/mesh/processes"
	"keelson.dev/test/scenario"
)

// TestNetwork runs the scenarios of Services and names on a mesh with cluster DNS.
func TestNetwork(t *testing.T) {
	m := processes.New(t, 2, processes.WithDNS)
	t.Run("LoadBalancers", func(t *testing.T) { tellsLoadBalancers(t, m) })
	scenario.RunAll(t, m, scenario.Networked)
	t.Run("KillsUnderLoad", func(t *testing.T) {
		scenario.KillsUnderLoad(t, m, func(t testing.TB) { killCoreDNS(t, m) })
	})
	m.Restart(t, mesh.PodGC, patience...)
	t.Run("LinkCut", func(t *testing.T) {
		scenario.LinkCut(t, m, func(t testing.TB) { setLink(t, m, 2, false) },
			func(t testing.TB) { setLink(t, m, 2, true) })
	})
}

// tellsLoadBalancers asks each node, as load balancers do, whether it takes new connections, before, while and after
// the cluster autoscaler means to take the first one away.
func tellsLoadBalancers(t *testing.T, m *processes.Mesh) {
	w := scenario.In(t, m)
	expect := func(when string, want ...int) {
		t.Helper()
		w.Await("what load balancers are told "+when, func() string {
			var got []int
			for _, agent := range m.Of(t, mesh.NodeAgent) {
				answer, err := http.Get("http://" + flag(agent, "--service-proxy-health-address") + "/healthz")
				if err != nil {
					return err.Error()
				}
				_ = answer.Body.Close()
				got = append(got, answer.StatusCode)
			}
			if slices.Equal(got, want) {
				return ""
			}
			return fmt.Sprint(got)
		})
	}
	expect("of nodes that work", http.StatusOK, http.StatusOK)
	const taint = "ToBeDeletedByClusterAutoscaler"
	w.Kubectl("taint", "node", m.Nodes()[0], taint+"=1:NoSchedule")
	expect("of one that is going", http.StatusServiceUnavailable, http.StatusOK)
	w.Kubectl("taint", "node", m.Nodes()[0], taint+"-")
	expect("of one that stays after all", http.StatusOK, http.StatusOK)
}

// flag is the value of a process's flag.
func flag(p subprocess.Process, name string) string {
	for _, arg := range p.Args {
		if value, ok := strings.CutPrefix(arg, name+"="); ok {
			return value
		}
	}
	return ""
}

// killCoreDNS kills what runs of it in the mesh's Pods.
func killCoreDNS(t testing.TB, m *processes.Mesh) {
	t.Helper()
	names, err := filepath.Glob("/proc/[0-9]*/comm")
	if err != nil {
		t.Fatal(err)
	}
	killed := 0
	for _, file := range names {
		name, err := os.ReadFile(file)
		if err != nil || string(name) != "coredns\n" {
			continue
		}
		process := filepath.Dir(file)
		groups, err := os.ReadFile(filepath.Join(process, "cgroup"))
		if err != nil || !strings.Contains(string(groups), filepath.Dir(m.CgroupRoot())+"/") {
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
	if killed == 0 {
		t.Fatal("no CoreDNS runs in the mesh")
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
