package cri

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc/status"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"keelson.dev/services/nodeagent/internal/runtime"
)

// CreateContainer implements runtime.Containers.
func (r *Runtime) CreateContainer(ctx context.Context, sandboxID string, config *cri.ContainerConfig,
	sandbox *cri.PodSandboxConfig) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, createFor)
	defer cancel()
	answer, err := r.runtime.CreateContainer(ctx, &cri.CreateContainerRequest{PodSandboxId: sandboxID, Config: config,
		SandboxConfig: sandbox})
	if err != nil {
		return "", failed("creating container "+config.GetMetadata().GetName(), err)
	}
	return answer.ContainerId, nil
}

// StartContainer implements runtime.Containers.
func (r *Runtime) StartContainer(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, createFor)
	defer cancel()
	_, err := r.runtime.StartContainer(ctx, &cri.StartContainerRequest{ContainerId: id})
	return failed("starting container "+id, err)
}

// StopContainer implements runtime.Containers.
func (r *Runtime) StopContainer(ctx context.Context, id string, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout+stopSlack)
	defer cancel()
	seconds := int64(math.Ceil(timeout.Seconds()))
	_, err := r.runtime.StopContainer(ctx, &cri.StopContainerRequest{ContainerId: id, Timeout: seconds})
	return ignoreNotFound("stopping container "+id, err)
}

// settled is how long the runtime may still be abandoning a start, and the OCI runtime may still work on an
// abandoned one.
const settled = time.Second

// RemoveContainer implements runtime.Containers. With containerd, it ends what an interrupted start has left over
// containerd's own API: for an instance that never started before the removal, since afterwards it is unknown,
// and for any other that cannot be removed.
func (r *Runtime) RemoveContainer(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, shortCall)
	defer cancel()
	s, err := r.containerStatus(ctx, id)
	if err == nil && s.GetState() == cri.ContainerState_CONTAINER_CREATED {
		wait(ctx, settled)
		s, err = r.containerStatus(ctx, id)
	}
	if err != nil {
		return ignoreNotFound("asking for the state of container "+id, err)
	}
	var ended error
	if s.GetState() != cri.ContainerState_CONTAINER_RUNNING && s.GetStartedAt() <= 0 {
		wait(ctx, time.Until(instant(s.GetFinishedAt()).Add(settled)))
		ended = r.behind.End(ctx, id)
	}
	removed := r.removeContainer(ctx, id)
	if removed != nil && s.GetState() == cri.ContainerState_CONTAINER_EXITED {
		if ended = r.behind.End(ctx, id); ended == nil {
			removed = r.removeContainer(ctx, id)
		}
	}
	if removed == nil && ended != nil {
		r.log.Warn("something of a container that never started may be left", zap.String("container", id),
			zap.Error(ended))
		return nil
	}
	return errors.Join(removed, ended)
}

func (r *Runtime) containerStatus(ctx context.Context, id string) (*cri.ContainerStatus, error) {
	answer, err := r.runtime.ContainerStatus(ctx, &cri.ContainerStatusRequest{ContainerId: id})
	return answer.GetStatus(), err
}

func (r *Runtime) removeContainer(ctx context.Context, id string) error {
	_, err := r.runtime.RemoveContainer(ctx, &cri.RemoveContainerRequest{ContainerId: id})
	return ignoreNotFound("removing container "+id, err)
}

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// UpdateContainer implements runtime.Containers.
func (r *Runtime) UpdateContainer(ctx context.Context, id string, limits *cri.LinuxContainerResources) error {
	ctx, cancel := context.WithTimeout(ctx, shortCall)
	defer cancel()
	_, err := r.runtime.UpdateContainerResources(ctx, &cri.UpdateContainerResourcesRequest{ContainerId: id,
		Linux: limits})
	return failed("changing the limits of container "+id, err)
}

// ReopenLog implements runtime.Containers.
func (r *Runtime) ReopenLog(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, shortCall)
	defer cancel()
	_, err := r.runtime.ReopenContainerLog(ctx, &cri.ReopenContainerLogRequest{ContainerId: id})
	return failed("reopening the log of container "+id, err)
}

// ExecSync implements runtime.Containers.
func (r *Runtime) ExecSync(ctx context.Context, id string, command []string, timeout time.Duration) (runtime.ExecResult,
	error) {
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout+stopSlack)
		defer cancel()
	}
	answer, err := r.runtime.ExecSync(ctx, &cri.ExecSyncRequest{ContainerId: id, Cmd: command,
		Timeout: int64(math.Ceil(timeout.Seconds()))})
	if err != nil {
		return runtime.ExecResult{}, failed("running a command in container "+id, err)
	}
	return runtime.ExecResult{Stdout: answer.Stdout, Stderr: answer.Stderr, ExitCode: answer.ExitCode}, nil
}

// ExecURL implements runtime.Streams.
func (r *Runtime) ExecURL(ctx context.Context, req *cri.ExecRequest) (string, error) {
	answer, err := r.runtime.Exec(ctx, req)
	return answer.GetUrl(), failed("preparing exec", err)
}

// AttachURL implements runtime.Streams.
func (r *Runtime) AttachURL(ctx context.Context, req *cri.AttachRequest) (string, error) {
	answer, err := r.runtime.Attach(ctx, req)
	return answer.GetUrl(), failed("preparing attach", err)
}

// PortForwardURL implements runtime.Streams.
func (r *Runtime) PortForwardURL(ctx context.Context, req *cri.PortForwardRequest) (string, error) {
	answer, err := r.runtime.PortForward(ctx, req)
	return answer.GetUrl(), failed("preparing port-forward", err)
}

// ImageStatus implements runtime.Images.
func (r *Runtime) ImageStatus(ctx context.Context, ref string) (runtime.Image, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, shortCall)
	defer cancel()
	answer, err := r.image.ImageStatus(ctx, &cri.ImageStatusRequest{Image: &cri.ImageSpec{Image: ref}})
	if err != nil {
		return runtime.Image{}, false, failed("asking for image "+ref, err)
	}
	if answer.Image == nil {
		return runtime.Image{}, false, nil
	}
	return image(answer.Image), true, nil
}

// PullImage implements runtime.Images. A pull has no time limit of its own: its context ends it.
func (r *Runtime) PullImage(ctx context.Context, ref string, auth *cri.AuthConfig,
	sandbox *cri.PodSandboxConfig) (string, error) {
	answer, err := r.image.PullImage(ctx, &cri.PullImageRequest{Image: &cri.ImageSpec{Image: ref}, Auth: auth,
		SandboxConfig: sandbox})
	if err != nil {
		return "", pullFailed(ref, err)
	}
	return answer.ImageRef, nil
}

// pullFailed distinguishes pull errors by the names that CRI puts at the beginning of the message.
func pullFailed(ref string, err error) error {
	doing := "pulling image " + ref
	message := status.Convert(err).Message()
	for name, kind := range map[string]error{
		"RegistryUnavailable": runtime.ErrRegistryUnavailable, "SignatureValidationFailed": runtime.ErrSignatureInvalid,
	} {
		if rest, ok := strings.CutPrefix(message, name); ok {
			return fmt.Errorf("container runtime: %s: %w%s", doing, kind, rest)
		}
	}
	return failed(doing, err)
}

// ListImages implements runtime.Images.
func (r *Runtime) ListImages(ctx context.Context) ([]runtime.Image, error) {
	ctx, cancel := context.WithTimeout(ctx, shortCall)
	defer cancel()
	answer, err := r.image.ListImages(ctx, &cri.ListImagesRequest{})
	if err != nil {
		return nil, failed("listing images", err)
	}
	out := make([]runtime.Image, 0, len(answer.Images))
	for _, i := range answer.Images {
		out = append(out, image(i))
	}
	return out, nil
}

// RemoveImage implements runtime.Images.
func (r *Runtime) RemoveImage(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, shortCall)
	defer cancel()
	_, err := r.image.RemoveImage(ctx, &cri.RemoveImageRequest{Image: &cri.ImageSpec{Image: id}})
	return ignoreNotFound("removing image "+id, err)
}

// ImageFs implements runtime.Images.
func (r *Runtime) ImageFs(ctx context.Context) (runtime.ImageFs, error) {
	ctx, cancel := context.WithTimeout(ctx, shortCall)
	defer cancel()
	answer, err := r.image.ImageFsInfo(ctx, &cri.ImageFsInfoRequest{})
	if err != nil {
		return runtime.ImageFs{}, failed("asking for the file system of its images", err)
	}
	for _, fs := range answer.ImageFilesystems {
		if mountpoint := fs.GetFsId().GetMountpoint(); mountpoint != "" {
			return runtime.ImageFs{Dir: mountpoint, Bytes: told(fs.UsedBytes), Inodes: told(fs.InodesUsed)}, nil
		}
	}
	return runtime.ImageFs{}, nil
}

// told returns a figure of the runtime; nil if the runtime does not report it.
func told(v *cri.UInt64Value) *uint64 {
	if v == nil {
		return nil
	}
	return &v.Value
}

// Layers implements runtime.Containers.
func (r *Runtime) Layers(ctx context.Context, podUID string) ([]runtime.Layer, error) {
	ctx, cancel := context.WithTimeout(ctx, shortCall)
	defer cancel()
	answer, err := r.runtime.ListContainerStats(ctx, &cri.ListContainerStatsRequest{Filter: &cri.ContainerStatsFilter{
		LabelSelector: map[string]string{runtime.LabelPodUID: podUID}}})
	if err != nil {
		return nil, failed("asking for what containers have written", err)
	}
	out := make([]runtime.Layer, 0, len(answer.Stats))
	for _, s := range answer.Stats {
		name := s.GetAttributes().GetMetadata()
		out = append(out, runtime.Layer{Container: name.GetName(), Attempt: name.GetAttempt(),
			Bytes:  int64(s.GetWritableLayer().GetUsedBytes().GetValue()),
			Inodes: int64(s.GetWritableLayer().GetInodesUsed().GetValue())})
	}
	return out, nil
}

func image(i *cri.Image) runtime.Image {
	out := runtime.Image{ID: i.Id, Tags: i.RepoTags, Digests: i.RepoDigests, Size: i.Size, Pinned: i.Pinned,
		User: i.Username}
	if i.Uid != nil {
		out.UID = &i.Uid.Value
	}
	return out
}
