package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"keelson.dev/test/mesh"
	"keelson.dev/test/mesh/processes"
	"keelson.dev/test/scenario"
)

// TestNetwork runs the scenarios of Services and names on a mesh with cluster DNS.
func TestNetwork(t *testing.T) {
	m := processes.New(t, 2, processes.WithDNS)
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
