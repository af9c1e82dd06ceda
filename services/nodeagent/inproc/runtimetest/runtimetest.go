// Package runtimetest lets the tests of a whole mesh check a real container runtime against what the nodeagent relies
// on.
package runtimetest

import (
	"context"
	"fmt"
	"testing"

	containers "github.com/containerd/containerd/api/services/containers/v1"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"keelson.dev/services/nodeagent/internal/runtime/conformance"
	"keelson.dev/services/nodeagent/internal/runtime/cri"
)

// Options say what the suite runs with.
type Options = conformance.Options

// Run runs the suite of the contract against the containerd at an endpoint, unix:///PATH.
func Run(t *testing.T, endpoint string, o Options) {
	conn, err := grpc.NewClient(endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithAuthority("localhost"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	o.Lose = func(ctx context.Context, id string) (func(context.Context) error, error) { return lose(ctx, conn, id) }
	r, err := cri.Connect(endpoint, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Errorf("closing the connection: %v", err)
		}
	})
	conformance.Run(t, r, o)
}

// lose deletes containerd's record of a container, whose task runs on, and returns what writes it again.
func lose(ctx context.Context, conn *grpc.ClientConn, id string) (back func(context.Context) error, err error) {
	client := containers.NewContainersClient(conn)
	inCRI := func(ctx context.Context) context.Context {
		return metadata.AppendToOutgoingContext(ctx, "containerd-namespace", "k8s.io")
	}
	record, err := client.Get(inCRI(ctx), &containers.GetContainerRequest{ID: id})
	if err != nil {
		return nil, fmt.Errorf("reading containerd's record of container %s: %w", id, err)
	}
	if _, err := client.Delete(inCRI(ctx), &containers.DeleteContainerRequest{ID: id}); err != nil {
		return nil, fmt.Errorf("deleting containerd's record of container %s: %w", id, err)
	}
	return func(ctx context.Context) error {
		_, err := client.Create(inCRI(ctx), &containers.CreateContainerRequest{Container: record.Container})
		return err
	}, nil
}
