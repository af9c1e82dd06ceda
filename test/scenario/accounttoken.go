package scenario

import (
	"encoding/base64"
	"strings"
	"testing"

	"keelson.dev/test/mesh"
)

// accountToken asks for a token of the account robot.
const accountToken = `apiVersion: v1
kind: Secret
metadata:
  name: robot-token
  annotations: {kubernetes.io/service-account.name: robot}
type: kubernetes.io/service-account-token
`

// ServiceAccountTokenSecret makes a Secret by hand for an account, as pipelines outside of a mesh do, and uses what it
// gets: the token with the account's rights and no other, the CA and the namespace. Both go with the account.
func ServiceAccountTokenSecret(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.Kubectl("create", "serviceaccount", "robot")
	w.Kubectl("create", "rolebinding", "robot", "--clusterrole=view", "--serviceaccount="+w.Namespace+":robot")
	w.KubectlWith(accountToken, "apply", "-f", "-")
	w.Kubectl("create", "secret", "generic", "other")
	held := map[string]string{}
	w.Await("the Secret to be filled", func() Answer {
		for _, key := range []string{"token", "ca\\.crt", "namespace"} {
			encoded := w.Kubectl("get", "secret", "robot-token", "-o", "jsonpath={.data."+key+"}")
			value, err := base64.StdEncoding.DecodeString(encoded)
			if err != nil || len(value) == 0 {
				return Saw(key + " is " + encoded)
			}
			held[key] = string(value)
		}
		return ""
	})
	if held["namespace"] != w.Namespace || !strings.HasPrefix(held["ca\\.crt"], "-----BEGIN CERTIFICATE-----") {
		t.Errorf("the Secret holds the namespace %q and the CA %q", held["namespace"], held["ca\\.crt"])
	}
	// kubectl prefers the user's certificate where there is one, so it is given the server alone.
	as := func(args ...string) Result {
		kubeconfig := w.directory(map[string]string{
			"config": "apiVersion: v1\nkind: Config\n", "ca.crt": held["ca\\.crt"],
		})
		return w.TryKubectl("", append(args, "--kubeconfig", kubeconfig+"/config", "--server", m.Admin().Host,
			"--certificate-authority", kubeconfig+"/ca.crt", "--token", held["token"])...)
	}
	if r := as("get", "serviceaccount", "robot", "-o", "name"); r.Code != 0 ||
		strings.TrimSpace(r.Stdout) != "serviceaccount/robot" || r.Stderr != "" {
		t.Errorf("the token reads its account: status %d, %q, %q", r.Code, r.Stdout, r.Stderr)
	}
	if r := as("get", "secret", "other"); r.Code == 0 || !strings.Contains(r.Stderr,
		`User "system:serviceaccount:`+w.Namespace+`:robot" cannot get resource "secrets"`) {
		t.Errorf("the token reads another Secret: status %d, %q, %q", r.Code, r.Stdout, r.Stderr)
	}
	w.awaitOutput([]string{"kubernetes.io/legacy-token-last-used"}, "get", "secret", "robot-token", "--show-labels")
	w.Kubectl("delete", "serviceaccount", "robot")
	w.Kubectl("wait", "--for=delete", "secret/robot-token", "--timeout="+patience.String())
	w.Await("the token to be refused", func() Answer {
		if r := as("get", "serviceaccounts"); r.Code == 0 || !strings.Contains(r.Stderr, "Unauthorized") &&
			!strings.Contains(r.Stderr, "must be logged in") {
			return Saw(r.Stdout + r.Stderr)
		}
		return ""
	})
	w.says("secret/other", "get", "secret", "other", "-o", "name")
}
