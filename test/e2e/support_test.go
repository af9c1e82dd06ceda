package e2e

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"keelson.dev/test/mesh"
	"keelson.dev/test/mesh/processes"
	"keelson.dev/test/scenario"
)

// credential stands wherever a user of the API may have written one.
const credential = "m4rk3rm4rk3rm4rk3r"

// secretive are objects with credentials in them.
const secretive = `
apiVersion: v1
kind: Secret
metadata: {name: s}
stringData: {user: ` + credential + `}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c}
data: {settings: ` + credential + `}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: secretive, annotations: {hook: ` + credential + `}}
spec:
  selector: {matchLabels: {app: secretive}}
  template:
    metadata: {labels: {app: secretive}}
    spec:
      containers:
      - {name: c, image: x, args: [--token, ` + credential + `], env: [{name: A, value: ` + credential + `}]}
---
apiVersion: v1
kind: Event
metadata: {name: e}
involvedObject: {kind: Pod, name: p, namespace: NAMESPACE}
reason: Failed
message: "pulling https://user:` + credential + `@registry.test failed"
`

// TestSupportBundle has keel collect a bundle of a mesh with credentials in its objects, and of one in which the
// scheduler and the apiserver hang.
func TestSupportBundle(t *testing.T) {
	m := processes.New(t, 0)
	w := scenario.In(t, m)
	w.KubectlWith(strings.ReplaceAll(secretive, "NAMESPACE", w.Namespace), "apply", "-f", "-")
	w.Kubectl("wait", "deployment", "secretive", "--for=jsonpath={.status.replicas}=1", "--timeout=60s")
	files := bundle(t, m)
	for _, daemon := range []string{"apiserver", "scheduler", "workload-controllers", "podgc"} {
		for name, holds := range map[string]string{"log.txt": `"message"`, "readyz.txt": "ok", "metrics.txt": "# TYPE",
			"goroutines.txt": "goroutine profile"} {
			if path := "daemons/" + daemon + "/" + name; !strings.Contains(files[path], holds) {
				t.Errorf("%s does not contain %q: %.200s", path, holds, files[path])
			}
		}
	}
	for name, holds := range map[string]string{"api/deployments.apps.json": `"name":"secretive"`,
		"api/pods.json": `"args":["REDACTED"`, "api/events.json": "https://REDACTED@registry.test", "status.json": `"running"`,
		"certificates.json": "apiserver.crt"} {
		if !strings.Contains(files[name], holds) {
			t.Errorf("%s does not contain %q: %.400s", name, holds, files[name])
		}
	}
	if strings.Contains(files["index.txt"], "Could not be collected") {
		t.Errorf("something is missing:\n%s", files["index.txt"])
	}

	for _, daemon := range []mesh.Daemon{mesh.APIServer, mesh.Scheduler} {
		p := m.Of(t, daemon)[0]
		signal(t, p, syscall.SIGSTOP)
		defer signal(t, p, syscall.SIGCONT)
	}
	files = bundle(t, m)
	for _, missing := range []string{"daemons/scheduler/readyz.txt: ", "daemons/apiserver/metrics.txt: ",
		"api/pods.json: asking the apiserver: "} {
		if !strings.Contains(files["index.txt"], "\n  "+missing) {
			t.Errorf("the index does not say that %s is missing:\n%s", missing, files["index.txt"])
		}
	}
	for _, there := range []string{"daemons/scheduler/log.txt", "daemons/podgc/readyz.txt"} {
		if files[there] == "" {
			t.Errorf("%s is missing:\n%s", there, files["index.txt"])
		}
	}
}

// bundle has keel collect a bundle in place of the one before, and unpacks it. It must hold no credential.
func bundle(t *testing.T, m *processes.Mesh) map[string]string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bundle.tar.gz")
	must(t, os.WriteFile(path, []byte("before"), 0o644))
	out, err := m.Keel(t.Context(), "support", "--output", path)
	if err != nil || !strings.HasSuffix(out, path+"\n") {
		t.Fatalf("keel support: %v\n%s", err, out)
	}
	packed, err := os.ReadFile(path)
	must(t, err)
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("the bundle has mode %v, %v", info.Mode(), err)
	}
	files := unpack(t, packed)
	for name, text := range files {
		for _, secret := range []string{credential, base64.StdEncoding.EncodeToString([]byte(credential)),
			"PRIVATE KEY", "client-key-data"} {
			if strings.Contains(text, secret) && name != "index.txt" {
				t.Errorf("%s contains %q", name, secret)
			}
		}
	}
	return files
}

// unpack reads the files of a bundle by their names in it.
func unpack(t *testing.T, packed []byte) map[string]string {
	t.Helper()
	plain, err := gzip.NewReader(bytes.NewReader(packed))
	must(t, err)
	files := map[string]string{}
	for archive := tar.NewReader(plain); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		must(t, err)
		content, err := io.ReadAll(archive)
		must(t, err)
		files[strings.TrimPrefix(header.Name, "keel-support/")] = string(content)
	}
}
