// Package cri is a container runtime behind CRI v1 on a unix socket.
package cri

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"keelson.dev/services/nodeagent/internal/runtime"
	"keelson.dev/services/nodeagent/internal/runtime/containerd"
)

// Time limits of calls. A stop may also take the grace period.
const (
	shortCall = 2 * time.Minute
	createFor = 4 * time.Minute
	stopSlack = 30 * time.Second
)

// maxMessage is the largest answer: the list of a node's images and containers is one message.
const maxMessage = 16 << 20

// reconnect paces attempts to reach a runtime that is down. They are cheap, and Pods wait for it.
var reconnect = backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2,
	MaxDelay: 2 * time.Second}

// Runtime speaks CRI; create it with Connect.
type Runtime struct {
	conn    *grpc.ClientConn
	runtime cri.RuntimeServiceClient
	image   cri.ImageServiceClient
	// behind ends what CRI does not see.
	behind *containerd.Client
	log    *zap.Logger
}

var _ runtime.Runtime = (*Runtime)(nil)

// Connect returns a client of the runtime at an endpoint, for example unix:///run/containerd/containerd.sock. It
// does not wait for the runtime: calls fail until it answers, and work again after it was restarted. Calls pass
// through the interceptors.
func Connect(endpoint string, log *zap.Logger, intercept ...grpc.UnaryClientInterceptor) (*Runtime, error) {
	conn, err := grpc.NewClient(endpoint,
		grpc.WithTransportCredentials(insecure.NewCredentials()), // a unix socket of root: its file mode protects it
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)),
		grpc.WithAuthority("localhost"),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: reconnect, MinConnectTimeout: time.Second}),
		grpc.WithChainUnaryInterceptor(intercept...),
	)
	if err != nil {
		return nil, fmt.Errorf("connecting to the container runtime at %s: %w", endpoint, err)
	}
	return &Runtime{conn: conn, runtime: cri.NewRuntimeServiceClient(conn), image: cri.NewImageServiceClient(conn),
		behind: containerd.New(conn), log: log}, nil
}

// CheckEndpoint returns an error if the form of an endpoint is invalid.
func CheckEndpoint(endpoint string) error {
	if path, ok := strings.CutPrefix(endpoint, "unix://"); !ok || !strings.HasPrefix(path, "/") {
		return fmt.Errorf("%q must have the form unix:///PATH", endpoint)
	}
	return nil
}

// Close ends the connection.
func (r *Runtime) Close() error { return r.conn.Close() }

// Version implements runtime.Runtime.
func (r *Runtime) Version(ctx context.Context) (runtime.Version, error) {
	ctx, cancel := context.WithTimeout(ctx, shortCall)
	defer cancel()
	v, err := r.runtime.Version(ctx, &cri.VersionRequest{})
	if err != nil {
		return runtime.Version{}, failed("asking for its version", err)
	}
	return runtime.Version{Name: v.RuntimeName, Version: v.RuntimeVersion}, nil
}

// Status implements runtime.Runtime.
func (r *Runtime) Status(ctx context.Context) (runtime.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, shortCall)
	defer cancel()
	answer, err := r.runtime.Status(ctx, &cri.StatusRequest{})
	if err != nil {
		return runtime.Status{}, failed("asking for its status", err)
	}
	out := runtime.Status{RuntimeProblem: "the runtime does not tell its state",
		NetworkProblem: "the runtime does not tell the state of its network"}
	for _, c := range answer.GetStatus().GetConditions() {
		problem := ""
		if !c.Status {
			problem = c.Reason + ": " + c.Message
		}
		switch c.Type {
		case cri.RuntimeReady:
			out.RuntimeProblem = problem
		case cri.NetworkReady:
			out.NetworkProblem = problem
		}
	}
	out.Handlers = handlers(answer.RuntimeHandlers)
	if f := answer.GetFeatures(); f != nil {
		out.SupplementalGroupsPolicy = &f.SupplementalGroupsPolicy
	}
	out.CgroupDriver = r.cgroupDriver(ctx)
	return out, nil
}

// handlers returns the handlers sorted: the runtime reports them in another order each time.
func handlers(told []*cri.RuntimeHandler) []runtime.Handler {
	out := make([]runtime.Handler, 0, len(told))
	for _, h := range told {
		out = append(out, runtime.Handler{Name: h.Name, UserNamespaces: h.GetFeatures().GetUserNamespaces(),
			RecursiveReadOnlyMounts: h.GetFeatures().GetRecursiveReadOnlyMounts()})
	}
	slices.SortFunc(out, func(a, b runtime.Handler) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// cgroupDriver returns an empty name for runtimes that are too old to report it.
func (r *Runtime) cgroupDriver(ctx context.Context) string {
	answer, err := r.runtime.RuntimeConfig(ctx, &cri.RuntimeConfigRequest{})
	if err != nil || answer.GetLinux() == nil {
		return ""
	}
	if answer.GetLinux().GetCgroupDriver() == cri.CgroupDriver_SYSTEMD {
		return "systemd"
	}
	return "cgroupfs"
}

// UpdatePodCIDR implements runtime.Runtime.
func (r *Runtime) UpdatePodCIDR(ctx context.Context, cidr string) error {
	ctx, cancel := context.WithTimeout(ctx, shortCall)
	defer cancel()
	_, err := r.runtime.UpdateRuntimeConfig(ctx, &cri.UpdateRuntimeConfigRequest{
		RuntimeConfig: &cri.RuntimeConfig{NetworkConfig: &cri.NetworkConfig{PodCidr: cidr}}})
	return failed("setting its Pod range", err)
}

// failed wraps an error of the runtime with the attempted action; nil stays nil. It keeps the runtime's own
// sentence without the words that gRPC puts around it.
func failed(doing string, err error) error {
	if err == nil {
		return nil
	}
	s, ok := status.FromError(err)
	if !ok {
		return fmt.Errorf("container runtime: %s: %w", doing, err)
	}
	switch s.Code() {
	case codes.NotFound:
		return fmt.Errorf("container runtime: %s: %w: %s", doing, runtime.ErrNotFound, s.Message())
	case codes.DeadlineExceeded:
		return fmt.Errorf("container runtime: %s: %w", doing, context.DeadlineExceeded)
	case codes.Canceled:
		return fmt.Errorf("container runtime: %s: %w", doing, context.Canceled)
	}
	return fmt.Errorf("container runtime: %s: %w", doing, errors.New(s.Message()))
}

func notFound(err error) bool { return status.Code(err) == codes.NotFound }

// ignoreNotFound is failed for calls that are done if their object is gone.
func ignoreNotFound(doing string, err error) error {
	if notFound(err) {
		return nil
	}
	return failed(doing, err)
}
