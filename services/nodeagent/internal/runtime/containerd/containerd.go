// Package containerd reaches behind CRI to containerd's own API. A StartContainer call of CRI that is interrupted,
// because the agent died or the call timed out, may leave remains that no call of CRI can end:
//
//   - containerd has created the task when the call ends, but CRI records the start as failed: the task stays, and the
//     container "cannot be deleted" while it has one;
//   - the same happens to a sandbox whose RunPodSandbox call is interrupted, but then CRI forgets the sandbox's
//     container: it removes the sandbox without it, and no longer lists it;
//   - the shim gets the container ready only after containerd has given it up: it waits for a deletion that is never
//     requested, and outlives its sandbox;
//   - containerd gives up the start while the OCI runtime creates the container: the OCI runtime keeps a folder, and
//     perhaps a process, that containerd does not know.
//
// The last two also result from sandboxes, and from any other work that containerd itself or a shim was killed in.
package containerd

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	containers "github.com/containerd/containerd/api/services/containers/v1"
	leases "github.com/containerd/containerd/api/services/leases/v1"
	sandboxes "github.com/containerd/containerd/api/services/sandbox/v1"
	tasks "github.com/containerd/containerd/api/services/tasks/v1"
	version "github.com/containerd/containerd/api/services/version/v1"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// namespace is where containerd keeps what CRI creates.
const namespace = "k8s.io"

// callTime bounds the end of one container.
const callTime = 20 * time.Second

// Client ends what interrupted starts have left; create it with New.
type Client struct {
	containers containers.ContainersClient
	tasks      tasks.TasksClient
	sandboxes  sandboxes.StoreClient
	leases     leases.LeasesClient
	version    version.VersionClient
	// run runs a command; tests replace it.
	run func(ctx context.Context, program string, args ...string) error
}

// New returns a client on a connection to a container runtime, which need not be containerd.
func New(conn grpc.ClientConnInterface) *Client {
	return &Client{containers: containers.NewContainersClient(conn), tasks: tasks.NewTasksClient(conn),
		sandboxes: sandboxes.NewStoreClient(conn), leases: leases.NewLeasesClient(conn),
		version: version.NewVersionClient(conn), run: run}
}

// End kills and deletes the task of a container, and all that the OCI runtime has of the container. A missing
// container is no error, nor is a runtime other than containerd. The container itself stays, to be removed by CRI.
// End must not be called for a container that CRI may still be starting.
func (c *Client) End(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(inNamespace(ctx), callTime)
	defer cancel()
	record, err := c.containers.Get(ctx, &containers.GetContainerRequest{ID: id})
	switch status.Code(err) {
	case codes.OK:
	case codes.Unimplemented, codes.NotFound:
		return nil
	default:
		return fmt.Errorf("containerd: asking for container %s: %w", id, err)
	}
	return errors.Join(c.endTask(ctx, id), c.deleteOCI(ctx, id, record.GetContainer().GetRuntime()))
}

func (c *Client) endTask(ctx context.Context, id string) error {
	_, err := c.tasks.Kill(ctx, &tasks.KillRequest{ContainerID: id, Signal: uint32(unix.SIGKILL), All: true})
	if err == nil {
		if _, err := c.tasks.Wait(ctx, &tasks.WaitRequest{ContainerID: id}); err != nil && !gone(err) {
			return fmt.Errorf("containerd: waiting for the end of task %s: %w", id, err)
		}
	}
	// A task that cannot be killed may have ended: the deletion shows that.
	if _, err := c.tasks.Delete(ctx, &tasks.DeleteTaskRequest{ContainerID: id}); err != nil && !gone(err) {
		return fmt.Errorf("containerd: deleting task %s: %w", id, err)
	}
	return nil
}

func gone(err error) bool { return status.Code(err) == codes.NotFound }

func (c *Client) deleteOCI(ctx context.Context, id string, runtime *containers.Container_Runtime) error {
	program, args, known, err := deletion(runtime.GetName(), runtime.GetOptions(), id)
	if err != nil || !known {
		return err
	}
	return c.run(ctx, program, args...)
}

func run(ctx context.Context, program string, args ...string) error {
	if out, err := exec.CommandContext(ctx, program, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("running %s %s: %w: %s", program, strings.Join(args, " "), err,
			strings.TrimSpace(string(out)))
	}
	return nil
}
