package scenario

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/test/mesh"
)

// KubectlProxy sends plain HTTP through kubectl proxy: it creates, reads and deletes ReplicaSets with every propagation
// policy.
//
// DEP-168 DEP-169 DEP-170 DEP-171 DEP-172
func KubectlProxy(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	collection := startProxy(w) + "/apis/apps/v1/namespaces/" + w.Namespace + "/replicasets"
	for _, c := range []struct {
		policy string
		stay   bool
	}{{"", false}, {"Background", false}, {"Foreground", false}, {"Orphan", true}} {
		if got, body := request(w, http.MethodPost, collection, "application/yaml",
			frontend(2, HelloV1)); got != http.StatusCreated {
			t.Fatalf("POST: status %d, %s", got, body)
		}
		w.awaitActive("app=web", 2)
		if got, body := request(w, http.MethodGet, collection+"/frontend", "", ""); got != http.StatusOK ||
			!strings.Contains(body, `"kind":"ReplicaSet"`) {
			t.Errorf("GET: status %d, %s", got, body)
		}
		options := ""
		if c.policy != "" {
			options = `{"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"` + c.policy + `"}`
		}
		if got, body := request(w, http.MethodDelete, collection+"/frontend", "application/json",
			options); got != http.StatusOK {
			t.Errorf("DELETE %s: status %d, %s", c.policy, got, body)
		}
		w.awaitNothing("replicasets")
		if !c.stay {
			w.awaitNothing("pods")
			continue
		}
		for _, pod := range w.awaitActive("app=web", 2) {
			if len(pod.OwnerReferences) != 0 {
				t.Errorf("after %s Pod %s is owned by %v", c.policy, pod.Name, pod.OwnerReferences)
			}
		}
	}
	if got, body := request(w, http.MethodPatch, strings.Replace(collection, "apps/v1", "apps/v2", 1)+"/frontend",
		"application/json", "{}"); got != http.StatusNotFound {
		t.Errorf("PATCH of a version that is not served: status %d, %s", got, body)
	}
	if err := w.Client.CoreV1().Pods(w.Namespace).DeleteCollection(w.Context(), metav1.DeleteOptions{},
		metav1.ListOptions{}); err != nil {
		t.Errorf("deleting the Pods: %v", err)
	}
}

// startProxy runs kubectl proxy until the test ends and returns its address.
func startProxy(w *World) string {
	w.Helper()
	command := w.kubectl("proxy", "--port=0")
	printed, err := command.StdoutPipe()
	if err != nil {
		w.Fatalf("reading kubectl: %v", err)
	}
	if err := command.Start(); err != nil {
		w.Fatalf("starting kubectl: %v", err)
	}
	w.Cleanup(func() { _ = command.Process.Kill(); _ = command.Wait() })
	const greeting = "Starting to serve on "
	return "http://" + strings.TrimPrefix(newLines(printed).await(w, greeting), greeting)
}

// request returns the answer's status and body.
func request(w *World, method, url, kind, body string) (int, string) {
	w.Helper()
	r, err := http.NewRequestWithContext(w.Context(), method, url, strings.NewReader(body))
	if err != nil {
		w.Fatalf("making a request: %v", err)
	}
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		w.Fatalf("%s %s: %v", method, url, err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		w.Fatalf("%s %s: %v", method, url, fmt.Errorf("reading the answer: %w", err))
	}
	return answer.StatusCode, string(text)
}
