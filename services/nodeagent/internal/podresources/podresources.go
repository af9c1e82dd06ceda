// Package podresources reports to other programs on the node which devices and CPUs Pods have exclusively, by the
// service PodResourcesLister (k8s.io/kubelet/pkg/apis/podresources/v1): so monitoring agents find the Pod of a device.
// It does not report memory and device claims, which no Pod has.
package podresources

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"go.uber.org/zap"
	"golang.org/x/time/rate"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	api "k8s.io/kubelet/pkg/apis/podresources/v1"
	"k8s.io/utils/cpuset"

	"keelson.dev/services/nodeagent/internal/deviceplugin"
	"keelson.dev/services/nodeagent/internal/lifecycle"
	"keelson.dev/services/nodeagent/internal/pluginsocket"
)

// socketName is the name of the socket, the same as the kubelet's.
const socketName = "kubelet.sock"

// The kubelet's limits: calls per second, and calls at once after a pause.
const (
	callsPerSecond = 100
	callsAtOnce    = 10
)

// The limits of a client: a question is two names.
const (
	maxQuestionBytes = 64 << 10
	maxStreams       = 64
)

// serveAgain is the pause before serving is tried again.
const serveAgain = 10 * time.Second

// Config is what a Server needs.
type Config struct {
	// Root is the agent's own folder.
	Root string
	Log  *zap.Logger
	// Pods returns the Pods that hold resources of the node.
	Pods func() []*corev1.Pod
	// Devices returns the devices of a Pod, AllDevices those that may be assigned.
	Devices    func(types.UID) deviceplugin.Allocation
	AllDevices func() deviceplugin.Devices
	// CPUs returns the exclusive CPUs of a container, AllCPUs those that may be assigned.
	CPUs    func(uid types.UID, container string) cpuset.CPUSet
	AllCPUs func() cpuset.CPUSet
}

// Server implements the service.
type Server struct {
	api.UnimplementedPodResourcesListerServer
	Config
	limit *rate.Limiter
}

// New returns a Server that does not listen yet.
func New(config Config) *Server {
	return &Server{Config: config, limit: rate.NewLimiter(callsPerSecond, callsAtOnce)}
}

// Dir returns the folder of the socket.
func (s *Server) Dir() string { return filepath.Join(s.Root, "pod-resources") }

// Run serves until ctx ends.
func (s *Server) Run(ctx context.Context) {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := s.serve(ctx); err != nil {
			s.Log.Warn("nobody is told which resources Pods have, trying again", zap.Error(err))
		}
	}, serveAgain)
}

func (s *Server) serve(ctx context.Context) error {
	if err := os.MkdirAll(s.Dir(), 0o750); err != nil {
		return fmt.Errorf("making the folder of the socket: %w", err)
	}
	if err := os.Remove(filepath.Join(s.Dir(), socketName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing an old socket: %w", err)
	}
	server := grpc.NewServer(grpc.UnaryInterceptor(s.limited), grpc.MaxRecvMsgSize(maxQuestionBytes),
		grpc.MaxConcurrentStreams(maxStreams))
	api.RegisterPodResourcesListerServer(server, s)
	return pluginsocket.Serve(ctx, s.Dir(), socketName, server)
}

// limited refuses calls beyond the limit.
func (s *Server) limited(ctx context.Context, in any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if !s.limit.Allow() {
		return nil, status.Error(codes.ResourceExhausted, "rejected by rate limit")
	}
	return next(ctx, in)
}

// List implements api.PodResourcesListerServer.
func (s *Server) List(context.Context, *api.ListPodResourcesRequest) (*api.ListPodResourcesResponse, error) {
	out := &api.ListPodResourcesResponse{}
	for _, pod := range slices.SortedFunc(slices.Values(s.Pods()), inOrder) {
		out.PodResources = append(out.PodResources, s.of(pod))
	}
	return out, nil
}

// Get implements api.PodResourcesListerServer.
func (s *Server) Get(_ context.Context, in *api.GetPodResourcesRequest) (*api.GetPodResourcesResponse, error) {
	for _, pod := range s.Pods() {
		if pod.Name == in.GetPodName() && pod.Namespace == in.GetPodNamespace() {
			return &api.GetPodResourcesResponse{PodResources: s.of(pod)}, nil
		}
	}
	return nil, status.Errorf(codes.NotFound, "pod %s in namespace %s not found", in.GetPodName(),
		in.GetPodNamespace())
}

// GetAllocatableResources implements api.PodResourcesListerServer.
func (s *Server) GetAllocatableResources(context.Context, *api.AllocatableResourcesRequest) (
	*api.AllocatableResourcesResponse, error) {
	return &api.AllocatableResourcesResponse{Devices: devices(s.AllDevices()), CpuIds: ids(s.AllCPUs())}, nil
}

func (s *Server) of(pod *corev1.Pod) *api.PodResources {
	has := holds{Devices: s.Devices(pod.UID), CPUs: map[string]cpuset.CPUSet{}}
	for _, entry := range lifecycle.Entries(pod) {
		has.CPUs[entry.Spec.Name] = s.CPUs(pod.UID, entry.Spec.Name)
	}
	return tell(pod, has)
}
