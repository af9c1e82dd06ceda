package e2e

import (
	"context"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"keelson.dev/test/mesh"
	"keelson.dev/test/mesh/processes"
	"keelson.dev/test/scenario"
)

// expectNothingLeft waits until the namespaces of all scenarios are gone and then looks for what their Pods could have
// left on the machine: containers, mounts, cgroups, directories, states of runc and addresses.
func expectNothingLeft(t *testing.T, m *processes.Mesh) {
	w := scenario.In(t, m)
	client, err := kubernetes.NewForConfig(m.Admin())
	if err != nil {
		t.Fatal(err)
	}
	w.Await("no Pods", func() string {
		pods, err := client.CoreV1().Pods("").List(w.Context(), metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		if len(pods.Items) > 0 {
			return fmt.Sprintf("%d Pods", len(pods.Items))
		}
		return ""
	})
	for what, look := range map[string]func(*processes.Mesh) (string, error){
		"containers": containers, "mounts": mounts, "cgroups": cgroups, "Pod directories": podDirectories,
		"runc state": runcState, "addresses": addresses,
	} {
		w.Await("no "+what, func() string {
			left, err := look(m)
			if err != nil {
				return err.Error()
			}
			return left
		})
	}
	if len(m.Of(t, mesh.NodeAgent)) == 0 {
		t.Error("no node was looked at")
	}
}

func containers(m *processes.Mesh) (string, error) {
	sockets, err := filepath.Glob(filepath.Join(m.DataDir, "nodes", "*", "containerd.sock"))
	if err != nil || len(sockets) == 0 {
		return "", fmt.Errorf("finding the runtimes' sockets: %d, %w", len(sockets), err)
	}
	var left []string
	for _, socket := range sockets {
		for _, kind := range []string{"containers", "tasks"} {
			command := exec.CommandContext(context.Background(), filepath.Join(scenario.BinDir(), "ctr"), "--address",
				socket, "--namespace", "k8s.io", kind, "list", "--quiet")
			out, err := command.Output()
			if err != nil {
				return "", fmt.Errorf("listing %s: %w", kind, err)
			}
			left = append(left, strings.Fields(string(out))...)
		}
	}
	return strings.Join(left, " "), nil
}

// mounts returns what is mounted below the nodes' directories.
func mounts(m *processes.Mesh) (string, error) {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	var left []string
	for line := range strings.Lines(string(table)) {
		const mountPoint = 4
		if fields := strings.Fields(line); strings.HasPrefix(fields[mountPoint], filepath.Join(m.DataDir, "nodes")+
			"/") {
			left = append(left, fields[mountPoint])
		}
	}
	return strings.Join(left, "\n"), nil
}

// cgroups returns the Pods' cgroups of this mesh in every hierarchy. The mesh's own root is known by its nodeagent's
// flag.
func cgroups(m *processes.Mesh) (string, error) {
	roots, err := filepath.Glob(filepath.Join("/sys/fs/cgroup", "*", m.CgroupRoot()))
	if err != nil {
		return "", err
	}
	unified := filepath.Join("/sys/fs/cgroup", m.CgroupRoot())
	var left []string
	for _, root := range append(roots, unified) {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() && strings.HasPrefix(entry.Name(), "pod") {
				left = append(left, path)
				return fs.SkipDir
			}
			if os.IsNotExist(err) {
				return nil
			}
			return err
		})
		if err != nil {
			return "", err
		}
	}
	if len(roots) == 0 {
		if _, err := os.Stat(unified); err != nil {
			return "", fmt.Errorf("the mesh has no cgroup at all: %w", err)
		}
	}
	return strings.Join(left, "\n"), nil
}

func podDirectories(m *processes.Mesh) (string, error) {
	left, err := filepath.Glob(filepath.Join(m.DataDir, "nodes", "*", "agent", "pods", "*"))
	return strings.Join(left, "\n"), err
}

// runcState returns what runc knows of containers.
func runcState(m *processes.Mesh) (string, error) {
	left, err := filepath.Glob(filepath.Join(m.DataDir, "nodes", "*", "containerd", "runc", "k8s.io", "*"))
	return strings.Join(left, "\n"), err
}

// addresses returns those that the nodes' networks keep for Pods: a file each, beside two of the plugin's own.
func addresses(m *processes.Mesh) (string, error) {
	files, err := filepath.Glob(filepath.Join(m.DataDir, "nodes", "*", "cni", "addresses", "*", "*"))
	if err != nil || len(files) == 0 {
		return "", fmt.Errorf("finding the networks' addresses: %d files, %w", len(files), err)
	}
	files = slices.DeleteFunc(files, func(file string) bool {
		_, err := netip.ParseAddr(filepath.Base(file))
		return err != nil
	})
	return strings.Join(files, "\n"), nil
}
