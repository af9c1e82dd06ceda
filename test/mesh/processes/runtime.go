package processes

import (
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	criv1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"keelson.dev/test/mesh"
)

// Runtime returns a client of the first node's container runtime, beside the nodeagent.
func (m *Mesh) Runtime(t testing.TB) criv1.RuntimeServiceClient {
	t.Helper()
	conn, err := grpc.NewClient("unix://"+m.RuntimeSocket(t), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return criv1.NewRuntimeServiceClient(conn)
}

// RuntimeSocket is the path of the socket of the first node's container runtime.
func (m *Mesh) RuntimeSocket(t testing.TB) string {
	t.Helper()
	for _, arg := range m.Of(t, mesh.NodeAgent)[0].Args {
		if endpoint, ok := strings.CutPrefix(arg, "--container-runtime-endpoint="); ok {
			return strings.TrimPrefix(endpoint, "unix://")
		}
	}
	t.Fatal("the nodeagent has no --container-runtime-endpoint")
	return ""
}
