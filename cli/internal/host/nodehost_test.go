package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"keelson.dev/cli/internal/plan"
	"keelson.dev/kit/namespaces"
)

// A node has its name and shared mounts of its own, however often it is made. What the machine mounts where its mounts
// are shared comes to the node, nothing of the node's comes to the machine, and once the node is gone nothing is left.
func TestANodesHostComesAndGoes(t *testing.T) {
	layout, nodes := plan.Layout{Dir: t.TempDir()}, []string{"node-1", "node-2"}
	before, name := mountTable(t), hostName(t)
	shared, private := filepath.Join(layout.Dir, "shared"), filepath.Join(layout.Dir, "private")
	mountAt(t, shared, unix.MS_SHARED)
	mountAt(t, private, unix.MS_PRIVATE)
	t.Cleanup(func() {
		must(t, RemoveHosts(layout))
		must(t, UnmountBelow(layout.Dir))
		if after := mountTable(t); after != before {
			t.Errorf("mounted are\n%s\nwant as before\n%s", after, before)
		}
	})
	for range 2 {
		must(t, EnsureHosts(layout, nodes))
	}
	for _, node := range nodes {
		for _, dir := range []string{"own", "new"} {
			must(t, os.MkdirAll(filepath.Join(layout.Dir, dir), 0o755))
		}
		inNode(t, layout, node, func() error {
			if got := hostName(t); got != node {
				t.Errorf("the host name of %s is %s", node, got)
			}
			return unix.Mount("tmpfs", filepath.Join(layout.Dir, "own"), "tmpfs", 0, "")
		})
	}
	for _, point := range []string{filepath.Join(shared, "late"), filepath.Join(private, "late")} {
		must(t, os.MkdirAll(point, 0o755))
		must(t, unix.Mount("tmpfs", point, "tmpfs", 0, ""))
	}
	for _, node := range nodes {
		inNode(t, layout, node, func() error {
			table := mountTable(t)
			for point, there := range map[string]bool{shared + "/late": true, private + "/late": false,
				filepath.Join(layout.Dir, "own"): true, layout.UTSNS("node-1"): false} {
				if strings.Contains(table, " "+point+" ") != there {
					t.Errorf("%s: %s is to be mounted: %t\n%s", node, point, there, table)
				}
			}
			for line := range strings.Lines(table) {
				if !strings.Contains(line, " shared:") {
					t.Errorf("%s: it is not shared: %s", node, line)
				}
			}
			return nil
		})
	}
	if got := hostName(t); got != name || strings.Contains(mountTable(t), "/own ") {
		t.Errorf("the machine is called %s, was %s, and has mounted\n%s", got, name, mountTable(t))
	}

	for range 2 {
		must(t, RemoveHosts(layout))
	}
	if entries, err := os.ReadDir(layout.Dir); err != nil || slices.ContainsFunc(entries,
		func(e os.DirEntry) bool { return e.Name() == filepath.Base(layout.Hosts()) }) {
		t.Errorf("%v is left, %v", entries, err)
	}
}

// What was cut off in the middle is made whole, and taken away.
func TestAHostThatIsHalfMade(t *testing.T) {
	layout := plan.Layout{Dir: t.TempDir()}
	t.Cleanup(func() { must(t, RemoveHosts(layout)) })
	for name, half := range map[string]func() error{
		"no mount":      func() error { return os.MkdirAll(layout.Hosts(), 0o711) },
		"no private":    func() error { return unix.Mount(layout.Hosts(), layout.Hosts(), "", unix.MS_BIND, "") },
		"no namespace":  func() error { return os.WriteFile(layout.MountNS("node-1"), nil, 0o600) },
		"mounted twice": func() error { return unix.Mount(layout.Hosts(), layout.Hosts(), "", unix.MS_BIND, "") },
	} {
		must(t, RemoveHosts(layout))
		must(t, os.MkdirAll(layout.Hosts(), 0o711))
		must(t, half())
		must(t, EnsureHosts(layout, []string{"node-1"}))
		inNode(t, layout, "node-1", func() error {
			if got := hostName(t); got != "node-1" {
				t.Errorf("%s: the host name is %s", name, got)
			}
			return nil
		})
	}
}

// The kernel keeps a mount namespace only in one of a smaller number, and its processors give numbers of their own.
func TestNamespacesAreKeptWhateverTheirNumbers(t *testing.T) {
	dir := t.TempDir()
	must(t, ensurePrivate(dir))
	t.Cleanup(func() { must(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	for i := range 4 {
		file := filepath.Join(dir, fmt.Sprint(i))
		must(t, makeNamespace(file, "mnt", ownMounts))
		must(t, removeNamespace(file))
		refused := false
		must(t, makeNamespace(file, "mnt", func() error {
			if !refused {
				refused = true
				return unix.EINVAL
			}
			return ownMounts()
		}))
		if !isNamespace(file) {
			t.Error("no namespace is kept")
		}
		must(t, removeNamespace(file))
	}
	if err := makeNamespace(filepath.Join(dir, "x"), "mnt", func() error { return unix.EPERM }); !errors.Is(err,
		unix.EPERM) {
		t.Errorf("got %v", err)
	}
}

func inNode(t *testing.T, layout plan.Layout, node string, do func() error) {
	t.Helper()
	must(t, namespaces.Files{UTS: layout.UTSNS(node), Mount: layout.MountNS(node)}.Do(do))
}

func mountAt(t *testing.T, dir string, propagation uintptr) {
	t.Helper()
	must(t, os.MkdirAll(dir, 0o755))
	must(t, unix.Mount("tmpfs", dir, "tmpfs", 0, ""))
	must(t, unix.Mount("", dir, "", propagation, ""))
}

func mountTable(t *testing.T) string {
	t.Helper()
	table, err := os.ReadFile("/proc/thread-self/mountinfo")
	must(t, err)
	return string(table)
}

func hostName(t *testing.T) string {
	t.Helper()
	var name unix.Utsname
	must(t, unix.Uname(&name))
	return unix.ByteSliceToString(name.Nodename[:])
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err) // some calls are not of the test's goroutine
	}
}
