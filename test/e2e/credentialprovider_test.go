package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"keelson.dev/test/mesh"
	"keelson.dev/test/mesh/processes"
	"keelson.dev/test/scenario"
)

// providerConfig has three providers: the node's, one by tokens of accounts, and a broken one.
const providerConfig = `{apiVersion: kubelet.config.k8s.io/v1, kind: CredentialProviderConfig, providers: [
  {name: of-node, matchImages: ["%s"], defaultCacheDuration: 1m, apiVersion: credentialprovider.kubelet.k8s.io/v1,
    args: [secret]},
  {name: of-account, matchImages: ["%s"], defaultCacheDuration: 1m, apiVersion: credentialprovider.kubelet.k8s.io/v1,
    args: [secret], tokenAttributes: {serviceAccountTokenAudience: registry, cacheType: Token,
    requireServiceAccount: true}},
  {name: broken, matchImages: ["%s"], defaultCacheDuration: 1m, apiVersion: credentialprovider.kubelet.k8s.io/v1}]}`

// providing is a plugin that keeps its last request beside it, and gives a password for all registries. Its node has no
// PATH to the machine's programs.
const providing = `#!/bin/sh
PATH=/usr/bin:/bin
cat > "$0.request"
echo '{"kind": "CredentialProviderResponse", "apiVersion": "credentialprovider.kubelet.k8s.io/v1",
  "cacheKeyType": "Image", "auth": {"127.0.0.1:'$(sed 's/.*127.0.0.1:\([0-9]*\).*/\1/' "$0.request")'":
    {"username": "me", "password": "'$1'"}}}'
`

// audience lets nodes request tokens for the registry.
const audience = `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: registry-tokens},
  rules: [{apiGroups: [""], resources: [registry], verbs: [request-serviceaccounts-token-audience]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: registry-tokens},
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: registry-tokens},
  subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: system:nodes}]}`

// TestCredentialProviders pulls images from registries that want a password, which plugins on the node provide.
func TestCredentialProviders(t *testing.T) {
	m := processes.New(t, 1)
	w := scenario.In(t, m)
	node, account, refused := serveRegistry(t, "me", "secret"), serveRegistry(t, "me", "secret"),
		serveRegistry(t, "me", "secret")
	dir := t.TempDir()
	config := filepath.Join(dir, "providers.yaml")
	must(t, os.WriteFile(config, fmt.Appendf(nil, providerConfig, node, account, refused), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "of-node"), []byte(providing), 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "of-account"), []byte(providing), 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "broken"), []byte("#!/bin/sh\necho no role here >&2\nexit 3\n"), 0o700))
	w.KubectlWith(audience, "apply", "-f", "-")
	m.Restart(t, mesh.NodeAgent, "--image-credential-provider-config="+config,
		"--image-credential-provider-bin-dir="+dir)

	w.Kubectl("run", "of-node", "--image="+node+"/hello:2")
	w.Kubectl("run", "of-account", "--image="+account+"/hello:2")
	w.Kubectl("wait", "--for=condition=Ready", "pod/of-node", "pod/of-account", "--timeout=60s")
	for plugin, wants := range map[string]bool{"of-node": false, "of-account": true} {
		request, err := os.ReadFile(filepath.Join(dir, plugin+".request"))
		must(t, err)
		if strings.Contains(string(request), `"serviceAccountToken":"ey`) != wants ||
			!strings.Contains(string(request), "/hello") || strings.Contains(string(request), "hello:2") {
			t.Errorf("the plugin %s was given %s", plugin, request)
		}
	}

	w.Kubectl("run", "refused", "--image="+refused+"/hello:2")
	w.Await("a message that says why the plugin failed", func() scenario.Answer {
		got := w.Kubectl("get", "events", "--field-selector=involvedObject.name=refused,reason=Failed")
		const want = `credential provider "broken" ended with status 3: no role here; the pull without it`
		if !strings.Contains(got, want) {
			return scenario.Saw(got)
		}
		return ""
	})

	// The node's image is for all Pods, the account's for those with the account.
	w.Kubectl("create", "serviceaccount", "other")
	as := `--overrides={"apiVersion": "v1", "spec": {"serviceAccountName": "other"}}`
	w.Kubectl("run", "of-node-too", "--image="+node+"/hello:2", "--image-pull-policy=Never", as)
	w.Kubectl("run", "of-account-too", "--image="+account+"/hello:2", "--image-pull-policy=Never")
	w.Kubectl("run", "of-other", "--image="+account+"/hello:2", "--image-pull-policy=Never", as)
	w.Kubectl("wait", "--for=condition=Ready", "pod/of-node-too", "pod/of-account-too", "--timeout=60s")
	w.Await("another account to be denied", func() scenario.Answer {
		got := w.Kubectl("get", "pod", "of-other", "--no-headers")
		if !strings.Contains(got, "ErrImageNeverPull") {
			return scenario.Saw(got)
		}
		return ""
	})
}
