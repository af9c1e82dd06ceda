// Package node prepares the container runtime of one node and takes it down.
package node

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/google/renameio/v2"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"keelson.dev/cli/internal/host"
	"keelson.dev/cli/internal/plan"
)

// maxRemovals is how many sandboxes are removed at once: each is a few processes' work.
const maxRemovals = 8

// WriteConfig writes the configuration of a node's containerd, and makes the folders that it and the network's name.
func WriteConfig(containerd plan.ContainerdInput) error {
	files := containerd.Node
	for _, dir := range []string{files.Containerd(""), files.CNI("conf"), files.CNI("addresses"), files.Agent(),
		files.PodLogs()} {
		if err := os.MkdirAll(dir, 0o711); err != nil {
			return fmt.Errorf("making the folders of %s: %w", files.Name, err)
		}
	}
	if err := RemoveStandIn(files); err != nil {
		return err
	}
	if err := writeChanged(files.RuntimeConfig(), plan.ContainerdConfig(containerd)); err != nil {
		return fmt.Errorf("configuring %s: %w", files.Name, err)
	}
	return nil
}

// writeChanged leaves a file alone that has its content already: a running containerd watches its configuration, and
// must never read half of it.
func writeChanged(file, content string) error {
	if have, err := os.ReadFile(file); err == nil && string(have) == content {
		return nil
	}
	return renameio.WriteFile(file, []byte(content), 0o600)
}

// Archives lists the image archives of a folder.
func Archives(dir string) ([]string, error) {
	archives, err := filepath.Glob(filepath.Join(dir, "*.tar"))
	if err != nil || len(archives) == 0 {
		return nil, errors.Join(fmt.Errorf("--images: %s holds no image archives (*.tar): make them with make images",
			dir), err)
	}
	return archives, nil
}

// Sums computes the archives' checksums.
func Sums(ctx context.Context, archives []string) (map[string]string, error) {
	sums := map[string]string{}
	for _, archive := range archives {
		sum, err := sumOf(ctx, archive)
		if err != nil {
			return nil, fmt.Errorf("reading the image %s: %w", archive, err)
		}
		sums[archive] = sum
	}
	return sums, nil
}

func sumOf(ctx context.Context, archive string) (string, error) {
	// A pipe without a writer would keep the opener waiting.
	file, err := os.OpenFile(archive, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", errors.New("it is no regular file")
	}
	hash := sha256.New()
	if _, err := io.Copy(hash, untilDone{ctx, file}); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// untilDone reads until ctx ends.
type untilDone struct {
	ctx context.Context
	io.Reader
}

func (r untilDone) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}

// ImportImage gives an image archive to a node's containerd.
func ImportImage(ctx context.Context, programs string, files plan.NodeLayout, archive string) error {
	command := exec.CommandContext(ctx, filepath.Join(programs, "ctr"), "--address", files.Socket(), "--namespace",
		"k8s.io",
		"images", "import", archive)
	command.WaitDelay = time.Second
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("importing %s into %s: %w: %s", filepath.Base(archive), files.Name, err,
			strings.TrimSpace(string(out)))
	}
	return nil
}

// CheckRuntime returns an error unless a node's containerd answers and its network is set up.
func CheckRuntime(ctx context.Context, files plan.NodeLayout) error {
	return withRuntime(files, func(client runtimeapi.RuntimeServiceClient) error {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		answer, err := client.Status(ctx, &runtimeapi.StatusRequest{})
		if err != nil {
			return fmt.Errorf("asking containerd for its status: %w", err)
		}
		for _, condition := range answer.GetStatus().GetConditions() {
			// The network comes with the nodeagent.
			if condition.GetType() == runtimeapi.RuntimeReady && !condition.GetStatus() {
				return fmt.Errorf("containerd: %s: %s", condition.GetReason(), condition.GetMessage())
			}
		}
		return nil
	})
}

// podUIDLabel is the conventional label with which the nodeagent marks a Pod's containers.
const podUIDLabel = "io.kubernetes.pod.uid"

// RunningPods returns the UIDs of the Pods with a running container.
func RunningPods(ctx context.Context, files plan.NodeLayout) (uids []string, err error) {
	err = withRuntime(files, func(client runtimeapi.RuntimeServiceClient) error {
		running := &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_RUNNING}
		list, err := client.ListContainers(ctx,
			&runtimeapi.ListContainersRequest{Filter: &runtimeapi.ContainerFilter{State: running}})
		if err != nil {
			return fmt.Errorf("listing the containers of %s: %w", files.Name, err)
		}
		for _, container := range list.GetContainers() {
			uids = append(uids, container.GetLabels()[podUIDLabel])
		}
		return nil
	})
	return uids, err
}

// RemovePods stops and removes every Pod of a node's runtime, with its network.
func RemovePods(ctx context.Context, files plan.NodeLayout) (removed int, err error) {
	err = withRuntime(files, func(client runtimeapi.RuntimeServiceClient) error {
		list, err := client.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{})
		if err != nil {
			return fmt.Errorf("listing the Pods of %s: %w", files.Name, err)
		}
		removed = len(list.GetItems())
		return removeAll(ctx, client, files, list.GetItems())
	})
	return removed, err
}

func removeAll(ctx context.Context, client runtimeapi.RuntimeServiceClient, files plan.NodeLayout,
	pods []*runtimeapi.PodSandbox,
) error {
	var (
		wait   sync.WaitGroup
		mu     sync.Mutex // guards failed
		failed error
	)
	room := make(chan struct{}, maxRemovals)
	for _, pod := range pods {
		room <- struct{}{}
		wait.Go(func() {
			defer func() { <-room }()
			err := removePod(ctx, client, pod)
			if err == nil {
				// A killed shim has left the socket, and only here is its Pod known.
				err = host.RemoveSocket(files.ShimSocket(pod.GetId()))
			}
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed = errors.Join(failed, err)
			}
		})
	}
	wait.Wait()
	return failed
}

func removePod(ctx context.Context, client runtimeapi.RuntimeServiceClient, pod *runtimeapi.PodSandbox) error {
	name := pod.GetMetadata().GetNamespace() + "/" + pod.GetMetadata().GetName()
	if _, err := client.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: pod.GetId()}); err != nil {
		return fmt.Errorf("stopping Pod %s: %w", name, err)
	}
	if _, err := client.RemovePodSandbox(ctx,
		&runtimeapi.RemovePodSandboxRequest{PodSandboxId: pod.GetId()}); err != nil {
		return fmt.Errorf("removing Pod %s: %w", name, err)
	}
	return nil
}

func withRuntime(files plan.NodeLayout, call func(runtimeapi.RuntimeServiceClient) error) error {
	conn, err := grpc.NewClient("unix://"+files.Socket(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return fmt.Errorf("dialing containerd: %w", err)
	}
	defer conn.Close()
	return call(runtimeapi.NewRuntimeServiceClient(conn))
}
