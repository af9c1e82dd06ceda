package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/nftables"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"keelson.dev/test/mesh"
	"keelson.dev/test/mesh/processes"
	"keelson.dev/test/scenario"
)

// leavings maps the kinds of things that Pods could leave on the machine to functions that list the existing ones.
var leavings = map[string]func(*processes.Mesh) ([]string, error){
	"containers":            fromContainerd("containers", "list", "--quiet"),
	"tasks":                 fromContainerd("tasks", "list", "--quiet"),
	"sandboxes":             storedSandboxes,
	"leases":                sandboxLeases,
	"layers of containers":  activeSnapshots,
	"shims":                 shims,
	"runc's folders":        below("containerd/runc/k8s.io/*"),
	"bundles":               below("containerd/*/io.containerd.runtime.v2.task/k8s.io/*"),
	"folders of containers": below("containerd/*/io.containerd.grpc.v1.cri/containers/*"),
	"folders of sandboxes":  below("containerd/*/io.containerd.grpc.v1.cri/sandboxes/*"),
	"network namespaces":    below("containerd/state/io.containerd.grpc.v1.cri/netns/*"),
	"addresses":             addresses,
	"links":                 links,
	"guards of links":       guards,
	"mounts":                mounts,
	"cgroups":               cgroups,
	"Pods' folders":         below("agent/pods/*"),
	"Pods' records":         below("agent/records/*"),
	"Pods' devices":         below("agent/devices/pods/*"),
	"static Pods' records":  below("agent/staticpods/*"),
	"logs":                  below("podlogs/*"),
}

// expectNothingLeft waits until the namespaces of all scenarios are gone, and then until nothing is left of their Pods.
func expectNothingLeft(t *testing.T, m *processes.Mesh) {
	w := scenario.In(t, m)
	client, err := kubernetes.NewForConfig(m.Admin())
	if err != nil {
		t.Fatal(err)
	}
	w.Await("no Pods", func() scenario.Answer {
		pods, err := client.CoreV1().Pods("").List(w.Context(), metav1.ListOptions{})
		if err != nil {
			return scenario.Saw(err.Error())
		}
		if len(pods.Items) > 0 {
			return scenario.Sawf("%d Pods", len(pods.Items))
		}
		return ""
	})
	if len(m.Of(t, mesh.NodeAgent)) == 0 {
		t.Error("no node was looked at")
	}
	w.Await("nothing to be left", func() scenario.Answer {
		var told []string
		for _, what := range slices.Sorted(maps.Keys(leavings)) {
			left, err := leavings[what](m)
			if err != nil {
				left = append(left, err.Error())
			}
			if len(left) > 0 {
				told = append(told, fmt.Sprintf("%d %s:\n  %s", len(left), what, strings.Join(left, "\n  ")))
			}
		}
		return scenario.Left(strings.Join(told, "\n"))
	})
}

// below looks into the folders of all nodes.
func below(pattern string) func(*processes.Mesh) ([]string, error) {
	return func(m *processes.Mesh) ([]string, error) {
		return filepath.Glob(filepath.Join(m.DataDir, "nodes", "*", filepath.FromSlash(pattern)))
	}
}

// mounts returns the mount points below the nodes' directories, on the machine and on the existing nodes.
func mounts(m *processes.Mesh) (left []string, err error) {
	look := func() error {
		below, err := mountsBelow(filepath.Join(m.DataDir, "nodes"))
		left = append(left, below...)
		return err
	}
	err = look()
	for _, node := range m.Nodes() {
		err = errors.Join(err, m.OnNode(node, look))
	}
	return left, err
}

// mountsBelow returns the mount points below a folder in the calling thread's mount namespace.
func mountsBelow(dir string) (points []string, err error) {
	table, err := os.ReadFile("/proc/thread-self/mountinfo")
	for line := range strings.Lines(string(table)) {
		const mountPoint = 4
		if fields := strings.Fields(line); strings.HasPrefix(fields[mountPoint], dir+"/") {
			points = append(points, fields[mountPoint])
		}
	}
	return points, err
}

// cgroups returns the Pods' cgroups of this mesh in every hierarchy. The mesh's own root is known by its nodeagent's
// flag.
func cgroups(m *processes.Mesh) ([]string, error) {
	roots, err := filepath.Glob(filepath.Join("/sys/fs/cgroup", "*", m.CgroupRoot()))
	if err != nil {
		return nil, err
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
			return nil, err
		}
	}
	if len(roots) == 0 {
		if _, err := os.Stat(unified); err != nil {
			return nil, fmt.Errorf("the mesh has no cgroup at all: %w", err)
		}
	}
	return left, nil
}

// addresses returns those that the nodes' networks keep for Pods: a file each, beside two of the plugin's own.
func addresses(m *processes.Mesh) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(m.DataDir, "nodes", "*", "cni", "addresses", "*", "*"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("finding the networks' addresses: %d files, %w", len(files), err)
	}
	return slices.DeleteFunc(files, func(file string) bool {
		_, err := netip.ParseAddr(filepath.Base(file))
		return err != nil
	}), nil
}

// links returns the ends of Pods' links at the bridges of the mesh.
func links(m *processes.Mesh) ([]string, error) {
	return filepath.Glob(filepath.Join("/sys/class/net", "keel"+meshID(m)+"-*", "brif", "*"))
}

// guards returns what holds Pods of the first node, which is on the machine itself, to their addresses.
func guards(m *processes.Mesh) ([]string, error) {
	conn, err := nftables.New()
	if err != nil {
		return nil, err
	}
	chains, err := conn.ListChainsOfTableFamily(nftables.TableFamilyNetdev)
	var left []string
	for _, chain := range chains {
		if strings.Contains(chain.Table.Name, meshID(m)) {
			left = append(left, chain.Table.Name+" "+chain.Name)
		}
	}
	return left, err
}

// meshID distinguishes the mesh in names that the kernel shares between meshes.
func meshID(m *processes.Mesh) string {
	return strings.TrimPrefix(filepath.Dir(m.CgroupRoot()), "/keelson-")
}
