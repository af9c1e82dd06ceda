package containerd

import (
	"context"
	"errors"
	"fmt"

	containers "github.com/containerd/containerd/api/services/containers/v1"
	leases "github.com/containerd/containerd/api/services/leases/v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/emptypb"
)

// Listed returns the IDs of all sandboxes that CRI lists.
type Listed func(context.Context) (map[string]bool, error)

// endLost ends the sandboxes that CRI has given up without ending them, and removes their records, which CRI would
// load again at its next start. It returns their IDs.
func (c *Client) endLost(ctx context.Context, listed Listed) (ended []string, err error) {
	lost, err := c.lost(ctx, listed)
	problems := []error{err}
	for _, id := range lost {
		err := c.End(ctx, id)
		if err == nil {
			err = c.forget(ctx, id)
		}
		if err != nil {
			problems = append(problems, err)
			continue
		}
		ended = append(ended, id)
	}
	return ended, errors.Join(problems...)
}

func (c *Client) lost(ctx context.Context, listed Listed) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	told, err := c.version.Version(ctx, &emptypb.Empty{})
	if err != nil {
		return nil, fmt.Errorf("containerd: asking for its version: %w", err)
	}
	recorded := map[string]bool{}
	if err := c.recordedContainers(inNamespace(ctx), recorded, sandboxesOnly); err != nil {
		return nil, err
	}
	if len(recorded) == 0 || !leasesSandboxes(told.GetVersion()) {
		return nil, nil
	}
	leased, err := c.leased(ctx)
	if err != nil {
		return nil, err
	}
	known, err := listed(ctx)
	if err != nil {
		return nil, err
	}
	return lostSandboxes(recorded, leased, known), nil
}

// leased returns the IDs of all leases; a sandbox's lease has the sandbox's ID.
func (c *Client) leased(ctx context.Context) (map[string]bool, error) {
	answer, err := c.leases.List(inNamespace(ctx), &leases.ListRequest{})
	if err != nil {
		return nil, fmt.Errorf("containerd: listing leases: %w", err)
	}
	ids := make(map[string]bool, len(answer.GetLeases()))
	for _, lease := range answer.GetLeases() {
		ids[lease.GetID()] = true
	}
	return ids, nil
}

// forget removes the record of a container. containerd then collects what only the record referred to: the layer
// that the container wrote.
func (c *Client) forget(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(inNamespace(ctx), callTime)
	defer cancel()
	if _, err := c.containers.Delete(ctx, &containers.DeleteContainerRequest{ID: id}); err != nil && !gone(err) {
		return fmt.Errorf("containerd: forgetting container %s: %w", id, err)
	}
	return nil
}

func inNamespace(ctx context.Context) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "containerd-namespace", namespace)
}
