package e2e

import (
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"keelson.dev/test/mesh/processes"
	"keelson.dev/test/registry"
	"keelson.dev/test/scenario"
)

// serveRegistry serves an image of this repository for as long as the test runs, and returns where.
func serveRegistry(t *testing.T, user, password string) (address string) {
	t.Helper()
	images, err := registry.Open(filepath.Join(scenario.BinDir(), "images", "hello-2.tar"))
	if err != nil {
		t.Fatal(err)
	}
	images.User, images.Password = user, password
	server := httptest.NewServer(images)
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// registryHosts is where the runtime reads how registries are reached.
const registryHosts = "/etc/containerd/certs.d"

// nameHosts says on a node how a registry is reached, in an empty folder in the place of the machine's.
func nameHosts(t *testing.T, m *processes.Mesh, node, registry, text string) {
	t.Helper()
	hosts := filepath.Join(registryHosts, registry)
	must(t, os.MkdirAll(registryHosts, 0o755))
	must(t, m.OnNode(node, func() error {
		return errors.Join(unix.Mount("none", registryHosts, "tmpfs", 0, "mode=755"), os.Mkdir(hosts, 0o755),
			os.WriteFile(filepath.Join(hosts, "hosts.toml"), []byte(text), 0o600))
	}))
	t.Cleanup(func() {
		must(t, m.OnNode(node, func() error { return unix.Unmount(registryHosts, unix.MNT_DETACH) }))
	})
}

// expectRegistries pulls an image that the mesh does not have from a mirror, which an operator names while the mesh
// runs, and one from a registry that wants a password.
func expectRegistries(t *testing.T, m *processes.Mesh) {
	w := scenario.In(t, m)
	mirror, private := serveRegistry(t, "", ""), serveRegistry(t, "me", "secret")
	const name = "registry.example.com"
	nameHosts(t, m, m.Nodes()[0], name,
		"[host.\"http://"+mirror+"\"]\n  capabilities = [\"pull\", \"resolve\"]\n")
	w.Kubectl("run", "mirrored", "--image="+name+"/any/hello:7")
	w.Kubectl("wait", "--for=condition=Ready", "pod/mirrored", "--timeout=60s")
	if got := w.Kubectl("exec", "mirrored", "--", "env"); !strings.Contains(got, "VERSION=2\n") {
		t.Errorf("the mirror's image has %q", got)
	}

	w.Kubectl("run", "refused", "--image="+private+"/hello:2")
	w.Await("a pull without a password to be refused", func() scenario.Answer {
		got := w.Kubectl("get", "pod", "refused", "--no-headers")
		if !strings.Contains(got, "ErrImagePull") && !strings.Contains(got, "ImagePullBackOff") {
			return scenario.Saw(got)
		}
		return ""
	})
	w.Kubectl("create", "secret", "docker-registry", "mine", "--docker-server="+private, "--docker-username=me",
		"--docker-password=secret")
	w.Kubectl("patch", "serviceaccount", "default", "--patch", `{"imagePullSecrets": [{"name": "mine"}]}`)
	w.Await("the account to be seen with its Secret", func() scenario.Answer {
		w.TryKubectl("", "delete", "pod", "allowed", "--ignore-not-found", "--now")
		w.Kubectl("run", "allowed", "--image="+private+"/hello:2")
		return scenario.Left(w.TryKubectl("", "wait", "--for=condition=Ready", "pod/allowed", "--timeout=20s").Stderr)
	})
}
