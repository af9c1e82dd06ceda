package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"keelson.dev/kit/namespaces"
	"keelson.dev/test/mesh/processes"
	"keelson.dev/test/scenario"
)

// propagating is a Pod on the node's network, of whose containers one mounts for the others and the node; FOLDER is the
// node's.
const propagating = `
{apiVersion: v1, kind: Pod, metadata: {name: POD}, spec: {terminationGracePeriodSeconds: 1, hostNetwork: true,
  nodeSelector: {kubernetes.io/hostname: NODE},
  containers: [
    {name: mounting, image: keelson.dev/hello:1, command: [sh, -c, sleep 3600, mounting],
      securityContext: {privileged: true},
      volumeMounts: [{name: d, mountPath: /d, mountPropagation: Bidirectional}]},
    {name: seeing, image: keelson.dev/hello:1, command: [sh, -c, sleep 3600],
      volumeMounts: [{name: d, mountPath: /d, mountPropagation: HostToContainer}]}],
  volumes: [{name: d, hostPath: {path: FOLDER, type: Directory}}]}}
`

// nodesAreHosts has Pods see the name of their node as the host's, and mount for others on the node, while the machine
// keeps its name and its mounts.
func nodesAreHosts(t *testing.T, m *processes.Mesh) {
	w := scenario.In(t, m)
	name, err := os.Hostname()
	must(t, err)
	for _, node := range m.Nodes() {
		pod, folder := "on-"+node, t.TempDir()
		must(t, os.Mkdir(filepath.Join(folder, "inner"), 0o755))
		manifest := strings.NewReplacer("POD", pod, "NODE", node, "FOLDER", folder).Replace(propagating)
		w.KubectlWith(manifest, "apply", "-f", "-")
		w.Kubectl("wait", "pod", pod, "--for=condition=Ready", "--timeout=60s")
		if got := w.Kubectl("exec", pod, "-c", "seeing", "--", "hostname"); got != node+"\n" {
			t.Errorf("on %s the host's name is %q", node, got)
		}
		must(t, mountFor(m, "mounting", w.Kubectl("get", "pod", pod, "--output=jsonpath={.metadata.uid}"), "/d/inner"))
		if got := w.Kubectl("exec", pod, "-c", "seeing", "--", "cat", "/d/inner/file"); got != "from mounting" {
			t.Errorf("on %s another container reads %q", node, got)
		}
		must(t, m.OnNode(node, func() error {
			if got, err := os.ReadFile(filepath.Join(folder, "inner", "file")); string(got) != "from mounting" {
				return fmt.Errorf("%s itself reads %q, %w", node, got, err)
			}
			return nil
		}))
		if left, err := mountsBelow(folder); err != nil || len(left) > 0 {
			t.Errorf("the machine has mounts of %s: %v, %v", node, left, err)
		}
	}
	if now, err := os.Hostname(); err != nil || now != name {
		t.Errorf("the machine is called %s, %v, and was %s", now, err, name)
	}
}

// mountFor has a container of a Pod mount a file system with a file. The container is known by an argument.
func mountFor(m *processes.Mesh, container, uid, target string) error {
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return err
	}
	for _, file := range files {
		process := filepath.Dir(file)
		command, _ := os.ReadFile(file) // it may have ended
		groups, _ := os.ReadFile(filepath.Join(process, "cgroup"))
		if !bytes.HasSuffix(command, []byte("\x00"+container+"\x00")) || !bytes.Contains(groups, []byte(uid)) {
			continue
		}
		return namespaces.Files{Mount: filepath.Join(process, "ns", "mnt")}.Do(func() error {
			if err := unix.Mount("tmpfs", target, "tmpfs", 0, ""); err != nil {
				return fmt.Errorf("mounting at %s: %w", target, err)
			}
			return os.WriteFile(filepath.Join(target, "file"), []byte("from "+container), 0o644)
		})
	}
	return fmt.Errorf("nothing of container %s runs", container)
}
