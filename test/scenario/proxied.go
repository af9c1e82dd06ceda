package scenario

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// expectPodsProxied reaches Pods by the apiserver, which passes requests on to a Service or to a Pod, with any method
// and body.
func expectPodsProxied(w *World, names []string) {
	w.Helper()
	namespace := startProxy(w) + "/api/v1/namespaces/" + w.Namespace
	for _, path := range []string{"/services/echo:http/proxy", "/services/http:echo:80/proxy"} {
		if got, by := request(w, http.MethodGet, namespace+path+"/hostname", "", ""); got != http.StatusOK ||
			!slices.Contains(names, strings.TrimSpace(by)) {
			w.Errorf("%s: status %d by %q, want one of %v", path, got, by, names)
		}
	}
	for _, pod := range names {
		path := "/pods/" + pod + ":8080/proxy"
		if got, by := request(w, http.MethodGet, namespace+path+"/hostname", "", ""); strings.TrimSpace(by) != pod {
			w.Errorf("%s: status %d by %q", path, got, by)
		}
		if got, said := request(w, http.MethodPost, namespace+path+"/echo", "text/plain", "hello"); said != "hello" {
			w.Errorf("POST to %s: status %d, %q", path, got, said)
		}
	}
	for path, want := range map[string]int{
		"/services/echo:ftp/proxy/":   http.StatusServiceUnavailable,
		"/services/empty:http/proxy/": http.StatusServiceUnavailable,
		"/services/nobody/proxy/":     http.StatusNotFound,
	} {
		if got, said := request(w, http.MethodGet, namespace+path, "", ""); got != want {
			w.Errorf("%s: status %d, %s, want %d", path, got, said, want)
		}
	}
}

// expectNodesProxied reaches what listens on each node by the apiserver: the node's agent, which knows the Pods of its
// own node, and another port, here that of a Service, at which one of the Pods answers.
func expectNodesProxied(w *World, names []string) {
	w.Helper()
	port := strconv.Itoa(int(w.service("ports").Spec.Ports[0].NodePort))
	for _, node := range w.Mesh.Nodes() {
		agent := strconv.Itoa(int(getNode(w, node).Status.DaemonEndpoints.KubeletEndpoint.Port))
		for _, address := range []string{node, node + ":" + agent, "https:" + node + ":" + agent} {
			proxy := "/api/v1/nodes/" + address + "/proxy"
			if said := w.Kubectl("get", "--raw", proxy+"/healthz"); said != "ok" {
				w.Errorf("%s/healthz: %q", proxy, said)
			}
			var pods corev1.PodList
			if err := json.Unmarshal([]byte(w.Kubectl("get", "--raw", proxy+"/pods")), &pods); err != nil {
				w.Errorf("%s/pods: %v", proxy, err)
			}
			if len(pods.Items) == 0 || slices.ContainsFunc(pods.Items,
				func(p corev1.Pod) bool { return p.Spec.NodeName != node }) {
				w.Errorf("%s/pods: %d Pods, want some, and those of the node alone", proxy, len(pods.Items))
			}
		}
		other := "/api/v1/nodes/" + node + ":" + port + "/proxy/hostname"
		if by := w.Kubectl("get", "--raw", other); !slices.Contains(names, strings.TrimSpace(by)) {
			w.Errorf("%s: %q, want one of %v", other, by, names)
		}
	}
	for path, want := range map[string]string{
		"nobody/proxy/healthz":                         "NotFound",
		w.Mesh.Nodes()[0] + ":65536/proxy/":            "must be a number from 1 to 65535",
		"http:" + w.Mesh.Nodes()[0] + ":1/proxy/path":  "connection refused",
		w.Mesh.Nodes()[0] + "/proxy/nothing-like-this": "NotFound",
	} {
		r := w.TryKubectl("", "get", "--raw", "/api/v1/nodes/"+path)
		if r.Code == 0 || !strings.Contains(r.Stderr, want) {
			w.Errorf("%s: status %d, %s, want %q", path, r.Code, r.Stderr, want)
		}
	}
}
