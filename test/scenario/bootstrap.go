package scenario

import (
	"crypto/x509/pkix"
	"fmt"
	"strings"
	"testing"

	"keelson.dev/test/mesh"
)

// bootstrapToken is a Secret that is the token ID.0123456789abcdef of a group of its own.
const bootstrapToken = `apiVersion: v1
kind: Secret
metadata: {name: bootstrap-token-%[1]s, namespace: kube-system}
type: bootstrap.kubernetes.io/token
stringData:
  token-id: %[1]s
  token-secret: 0123456789abcdef
  usage-bootstrap-authentication: "true"
  usage-bootstrap-signing: "true"
  auth-extra-groups: system:bootstrappers:%[2]s
`

// clusterInfo is what a machine with a token reads first.
const clusterInfo = `apiVersion: v1
kind: ConfigMap
metadata: {name: cluster-info, namespace: kube-public}
data: {kubeconfig: "apiVersion: v1"}
`

// BootstrapToken makes a token, with which a machine that has nothing else gets to know the mesh and is given the
// client certificate of a node. When the token has expired, it goes, and its signature with it.
func BootstrapToken(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	id := "t" + w.Namespace[len(w.Namespace)-5:]
	secret, group := "secret/bootstrap-token-"+id, "system:bootstrappers:"+w.Namespace
	defer func() {
		w.TryKubectl("", "delete", "-n", "kube-system", secret, "--ignore-not-found")
		w.TryKubectl("", "delete", "-n", "kube-public", "configmap/cluster-info", "--ignore-not-found")
		w.TryKubectl("", "delete", "clusterrolebinding", w.Namespace+"-asks", w.Namespace+"-has", "--ignore-not-found")
		w.TryKubectl("", "delete", "csr", w.Namespace, "--ignore-not-found")
	}()
	w.KubectlWith(fmt.Sprintf(bootstrapToken, id, w.Namespace), "create", "-n", "kube-system", "-f", "-")
	w.KubectlWith(clusterInfo, "create", "-n", "kube-public", "-f", "-")
	w.awaitOutput([]string{"jws-kubeconfig-" + id}, "get", "-n", "kube-public", "configmap/cluster-info", "-o", "yaml")
	w.Kubectl("create", "clusterrolebinding", w.Namespace+"-asks", "--clusterrole=system:node-bootstrapper",
		"--group="+group)
	w.Kubectl("create", "clusterrolebinding", w.Namespace+"-has", "--group="+group,
		"--clusterrole=system:certificates.k8s.io:certificatesigningrequests:nodeclient")
	dir := w.directory(map[string]string{"config": "apiVersion: v1\nkind: Config\n",
		"ca.crt": string(m.Admin().CAData)})
	as := func(stdin, token string, args ...string) Result {
		return w.TryKubectl(stdin, append(args, "--kubeconfig", dir+"/config", "--server", m.Admin().Host,
			"--certificate-authority", dir+"/ca.crt", "--token", token)...)
	}
	_, request := certificateRequest(w, pkix.Name{CommonName: "system:node:" + w.Namespace,
		Organization: []string{"system:nodes"}})
	asked := asks(w.Namespace, "kubernetes.io/kube-apiserver-client-kubelet", request, "digital signature",
		"client auth")
	w.Await("the token to ask", func() Answer {
		if r := as(asked, id+".0123456789abcdef", "create", "-f", "-"); r.Code != 0 &&
			!strings.Contains(r.Stderr, "already exists") {
			return Saw(r.Stderr)
		}
		return ""
	})
	w.awaitOutput([]string{"system:bootstrap:" + id, "Approved,Issued"}, "get", "csr", w.Namespace)
	if r := as("", id+".0123456789abcdeg", "get", "csr"); r.Code == 0 || !strings.Contains(r.Stderr, "logged in") {
		t.Errorf("another secret: status %d, %q, %q", r.Code, r.Stdout, r.Stderr)
	}
	if r := as("", id+".0123456789abcdef", "get", "secrets"); r.Code == 0 || !strings.Contains(r.Stderr, "forbidden") {
		t.Errorf("the token reads Secrets: status %d, %q, %q", r.Code, r.Stdout, r.Stderr)
	}
	w.Kubectl("patch", "-n", "kube-system", secret, "--type=merge", "-p",
		`{"stringData":{"expiration":"2026-01-01T00:00:00Z"}}`)
	w.Await("the end of the token", func() Answer {
		if r := w.TryKubectl("", "get", "-n", "kube-system", secret); !strings.Contains(r.Stderr, "not found") {
			return Saw(r.Stdout + r.Stderr)
		}
		if info := w.Kubectl("get", "-n", "kube-public", "configmap/cluster-info", "-o", "yaml"); strings.Contains(info,
			"jws-kubeconfig-"+id) {
			return Saw(info)
		}
		return ""
	})
	w.Await("nobody to believe it", func() Answer {
		if r := as("", id+".0123456789abcdef", "get", "csr"); r.Code == 0 {
			return Saw(r.Stdout)
		}
		return ""
	})
}
