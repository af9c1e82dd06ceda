package pod_test

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"testing"

	gorilla "github.com/gorilla/websocket"
	corev1 "k8s.io/api/core/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/transport/websocket"

	"keelson.dev/services/apiserver/internal/servertest"
)

// POD-224: a log over WebSocket arrives whole, however short it is, and ends as a WebSocket does.
func testLogWebSocket(t *testing.T, c *cluster, pods typedcorev1.PodInterface) {
	p := create(t, pods, nginx(onNode))
	plain, err := pods.GetLogs("nginx", &corev1.PodLogOptions{}).DoRaw(t.Context())
	must(t, err)
	for _, protocol := range []string{"binary.k8s.io", "base64.binary.k8s.io"} {
		for i := range 30 {
			got, err := readWebSocket(t, c, "/api/v1/namespaces/"+p.Namespace+"/pods/nginx/log", protocol)
			if protocol == "base64.binary.k8s.io" {
				decoded, wrong := base64.StdEncoding.DecodeString(string(got))
				must(t, wrong)
				got = decoded
			}
			if !bytes.Equal(got, plain) || !gorilla.IsCloseError(err, gorilla.CloseNormalClosure) {
				t.Fatalf("%q, try %d: got %q, ended with %v, want %q and a normal close", protocol, i, got, err, plain)
			}
		}
	}
}

// readWebSocket returns all messages of a connection and how it ended.
func readWebSocket(t *testing.T, c *cluster, path, protocol string) ([]byte, error) {
	t.Helper()
	config := c.ConfigAs(servertest.Admin)
	transport, holder, err := websocket.RoundTripperFor(config)
	must(t, err)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host+path, nil)
	must(t, err)
	conn, err := websocket.Negotiate(transport, holder, request, protocol)
	must(t, err)
	defer func() { _ = conn.Close() }()
	var all []byte
	for {
		_, message, err := conn.ReadMessage()
		if err != nil {
			return all, err
		}
		all = append(all, message...)
	}
}
