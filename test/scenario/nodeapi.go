package scenario

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/test/mesh"
)

// scraper is an account that may get the metrics of nodes, as Prometheus has it, and one that may do nothing.
const scraper = `apiVersion: v1
kind: ServiceAccount
metadata: {name: scraper}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: nobody}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: %[1]s-scraper}
rules:
- {apiGroups: [""], resources: [nodes/metrics], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: %[1]s-scraper}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %[1]s-scraper}
subjects:
- {kind: ServiceAccount, name: scraper, namespace: %[1]s}
`

// NodeAPIAuthorization asks the agents of all nodes themselves, as tools of the field do: by a token, which lets its
// user have what the API lets him have and no more.
func NodeAPIAuthorization(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	defer w.TryKubectl("", "delete", "clusterrolebinding,clusterrole", w.Namespace+"-scraper")
	w.KubectlWith(fmt.Sprintf(scraper, w.Namespace), "apply", "-f", "-")
	token := w.Kubectl("create", "token", "scraper")
	nobody := w.Kubectl("create", "token", "nobody")
	elsewhere := w.Kubectl("create", "token", "scraper", "--audience=elsewhere")
	for _, node := range m.Nodes() {
		for _, row := range []struct {
			name, token, path string
			want              int
			says              string
		}{
			{"the scraper", token, "/metrics", 200, "nodeagent_pods "},
			{"the scraper, of what is used", token, "/metrics/resource", 200, "node_cpu_usage_seconds_total "},
			{"the scraper, elsewhere", token, "/pods", 403, `may not get nodes/pods or nodes/proxy of this node`},
			{"the scraper, in a container", token, "/exec/ns/pod/container", 403, "may not create nodes/proxy"},
			{"an account without rights", nobody, "/metrics", 403,
				"system:serviceaccount:" + w.Namespace + ":nobody"},
			{"a token for another audience", elsewhere, "/metrics", 401, "the bearer token is not valid"},
			{"a token of nobody's", "nobody", "/metrics", 401, "the bearer token is not valid"},
			{"no token", "", "/metrics", 401, "a client certificate or a bearer token is required"},
		} {
			code, said := requestNodeAPI(w, node, row.path, row.token)
			if code != row.want || !strings.Contains(said, row.says) {
				t.Errorf("%s: %s of %s: %d %.300s, want %d %q", row.name, row.path, node, code, said, row.want,
					row.says)
			}
		}
		proxy := "/api/v1/nodes/" + node + "/proxy"
		for path, want := range map[string]string{"/healthz/syncloop": "ok", "/runningpods/": `"kind":"PodList"`,
			"/logs/": "<pre>"} {
			if said := w.Kubectl("get", "--raw", proxy+path); !strings.Contains(said, want) {
				t.Errorf("%s%s: %.300s, want %q", proxy, path, said, want)
			}
		}
	}
}

// requestNodeAPI asks the agent of a node with a token, and returns its answer.
func requestNodeAPI(w *World, node, path, token string) (int, string) {
	w.Helper()
	of := getNode(w, node)
	var address string
	for _, a := range of.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			address = a.Address
			break
		}
	}
	port := fmt.Sprint(of.Status.DaemonEndpoints.KubeletEndpoint.Port)
	request, err := http.NewRequestWithContext(w.Context(), http.MethodGet,
		"https://"+net.JoinHostPort(address, port)+path, http.NoBody)
	if err != nil {
		w.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(token))
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	answer, err := (&http.Client{Transport: transport, Timeout: 30 * time.Second}).Do(request)
	if err != nil {
		w.Fatalf("asking the agent of %s: %v", node, err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		w.Fatalf("reading what the agent of %s answers: %v", node, err)
	}
	return answer.StatusCode, string(text)
}
