package csiplugin

import (
	"context"
	"fmt"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"keelson.dev/services/nodeagent/internal/pluginsocket"
)

// Driver makes the calls to one driver's node service, each with a time limit. An error is one line, with the
// driver's own words cut to a bounded length.
type Driver struct {
	Identity
	Capabilities
	conn *grpc.ClientConn
	node csi.NodeClient
	// timeout bounds each call.
	timeout time.Duration
}

// Refusal is the error with which a driver has answered a call.
type Refusal struct {
	Code codes.Code
	text string
}

// Refuse returns a Refusal.
func Refuse(code codes.Code, text string) *Refusal { return &Refusal{code, text} }

// Error implements error.
func (r *Refusal) Error() string { return r.text }

// greet asks a driver for its identity and capabilities.
func greet(ctx context.Context, name string, conn *grpc.ClientConn, timeout time.Duration) (*Driver, error) {
	d := &Driver{conn: conn, node: csi.NewNodeClient(conn), timeout: timeout, Identity: Identity{Name: name}}
	err := d.call(ctx, "NodeGetInfo", func(ctx context.Context) error {
		info, err := d.node.NodeGetInfo(ctx, &csi.NodeGetInfoRequest{})
		if err != nil {
			return err
		}
		d.Identity, err = identify(name, info)
		return err
	})
	if err != nil {
		return nil, err
	}
	return d, d.call(ctx, "NodeGetCapabilities", func(ctx context.Context) error {
		response, err := d.node.NodeGetCapabilities(ctx, &csi.NodeGetCapabilitiesRequest{})
		d.Capabilities = capable(response)
		return err
	})
}

// Can returns the driver's capabilities.
func (d *Driver) Can() Capabilities { return d.Capabilities }

// Stage stages a volume on the node.
func (d *Driver) Stage(ctx context.Context, request *csi.NodeStageVolumeRequest) error {
	return d.call(ctx, "NodeStageVolume", func(ctx context.Context) error {
		_, err := d.node.NodeStageVolume(ctx, request)
		return err
	})
}

// Publish mounts a volume for one Pod.
func (d *Driver) Publish(ctx context.Context, request *csi.NodePublishVolumeRequest) error {
	return d.call(ctx, "NodePublishVolume", func(ctx context.Context) error {
		_, err := d.node.NodePublishVolume(ctx, request)
		return err
	})
}

// Unpublish undoes Publish. A volume that the driver does not know is no error.
func (d *Driver) Unpublish(ctx context.Context, handle, target string) error {
	return d.undo(ctx, "NodeUnpublishVolume", func(ctx context.Context) error {
		_, err := d.node.NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: handle, TargetPath: target})
		return err
	})
}

// Unstage undoes Stage. A volume that the driver does not know is no error.
func (d *Driver) Unstage(ctx context.Context, handle, staging string) error {
	return d.undo(ctx, "NodeUnstageVolume", func(ctx context.Context) error {
		_, err := d.node.NodeUnstageVolume(ctx, &csi.NodeUnstageVolumeRequest{VolumeId: handle,
			StagingTargetPath: staging})
		return err
	})
}

// Stats asks how full a volume is, and whether it is in order.
func (d *Driver) Stats(ctx context.Context, request *csi.NodeGetVolumeStatsRequest) (*csi.NodeGetVolumeStatsResponse,
	error) {
	var response *csi.NodeGetVolumeStatsResponse
	err := d.call(ctx, "NodeGetVolumeStats", func(ctx context.Context) (err error) {
		response, err = d.node.NodeGetVolumeStats(ctx, request)
		return err
	})
	return response, err
}

// Expand makes a volume on the node as large as it is in the storage.
func (d *Driver) Expand(ctx context.Context, request *csi.NodeExpandVolumeRequest) error {
	return d.call(ctx, "NodeExpandVolume", func(ctx context.Context) error {
		_, err := d.node.NodeExpandVolume(ctx, request)
		return err
	})
}

func (d *Driver) undo(ctx context.Context, method string, do func(context.Context) error) error {
	return d.call(ctx, method, func(ctx context.Context) error {
		err := do(ctx)
		if status.Code(err) == codes.NotFound {
			return nil
		}
		return err
	})
}

// call bounds the time of a call and adds the driver to its error.
func (d *Driver) call(ctx context.Context, method string, do func(context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	err := do(bounded)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%s of CSI driver %s: %w", method, d.Name, ctx.Err())
	case bounded.Err() != nil || status.Code(err) == codes.DeadlineExceeded: // the driver knows the deadline, too
		return fmt.Errorf("%s of CSI driver %s did not answer within %s", method, d.Name, d.timeout)
	}
	if answer, ok := status.FromError(err); ok {
		return &Refusal{Code: answer.Code(), text: fmt.Sprintf("%s of CSI driver %s: %s: %s", method, d.Name,
			answer.Code(), pluginsocket.Clip(answer.Message()))}
	}
	return err
}
