package nodeproxy_test

import (
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/apiserver/internal/nodeproxy"
)

// get asks the agent for a log and returns the error text, if any.
func get(t *testing.T, agent nodeproxy.Agent) string {
	t.Helper()
	at := agent.At(nodeproxy.LogLocation(&corev1.Pod{}, "c", &corev1.PodLogOptions{}))
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at.String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := agent.Transport.RoundTrip(request)
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return response.Status
	}
	return ""
}
