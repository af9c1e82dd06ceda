package containerd

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"

	containers "github.com/containerd/containerd/api/services/containers/v1"
	leases "github.com/containerd/containerd/api/services/leases/v1"
	sandboxes "github.com/containerd/containerd/api/services/sandbox/v1"
	tasks "github.com/containerd/containerd/api/services/tasks/v1"
	version "github.com/containerd/containerd/api/services/version/v1"
	"github.com/containerd/containerd/api/types"
	"github.com/containerd/containerd/api/types/runc/options"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/emptypb"
)

// server is containerd: it records the calls and answers with the errors that are set.
type server struct {
	runtime *containers.Container_Runtime
	fails   map[string]error
	calls   []string
	// recorded are the IDs of its containers, recordedPauses those of them that CRI created as sandboxes.
	recorded, recordedPauses []string
	// recordedSandboxes are its sandboxes without containers.
	recordedSandboxes []string
	leased            []string
	version           string
}

func (s *server) called(ctx context.Context, call string) error {
	if in, _ := metadata.FromIncomingContext(ctx); !slices.Equal(in.Get("containerd-namespace"), []string{"k8s.io"}) {
		return errors.New("not in the namespace of CRI")
	}
	s.calls = append(s.calls, call)
	return s.fails[call]
}

type containersServer struct {
	containers.UnimplementedContainersServer
	*server
}

func (s containersServer) Get(ctx context.Context, r *containers.GetContainerRequest) (
	*containers.GetContainerResponse, error) {
	return &containers.GetContainerResponse{Container: &containers.Container{ID: r.ID, Runtime: s.runtime}},
		s.called(ctx, "get "+r.ID)
}

func (s containersServer) Delete(ctx context.Context, r *containers.DeleteContainerRequest) (*emptypb.Empty, error) {
	return &emptypb.Empty{}, s.called(ctx, "forget "+r.ID)
}

type tasksServer struct {
	tasks.UnimplementedTasksServer
	*server
}

func (s tasksServer) Kill(ctx context.Context, r *tasks.KillRequest) (*emptypb.Empty, error) {
	if r.Signal != 9 || !r.All {
		return nil, errors.New("not all of it is killed")
	}
	return &emptypb.Empty{}, s.called(ctx, "kill "+r.ContainerID)
}

func (s tasksServer) Wait(ctx context.Context, r *tasks.WaitRequest) (*tasks.WaitResponse, error) {
	return &tasks.WaitResponse{}, s.called(ctx, "wait "+r.ContainerID)
}

func (s tasksServer) Delete(ctx context.Context, r *tasks.DeleteTaskRequest) (*tasks.DeleteResponse, error) {
	return &tasks.DeleteResponse{}, s.called(ctx, "delete "+r.ContainerID)
}

type sandboxesServer struct {
	sandboxes.UnimplementedStoreServer
	*server
}

func (s sandboxesServer) List(
	ctx context.Context,
	_ *sandboxes.StoreListRequest,
) (*sandboxes.StoreListResponse, error) {
	answer := &sandboxes.StoreListResponse{}
	for _, id := range s.recordedSandboxes {
		answer.List = append(answer.List, &types.Sandbox{SandboxID: id})
	}
	return answer, s.called(ctx, "list sandboxes")
}

type leasesServer struct {
	leases.UnimplementedLeasesServer
	*server
}

func (s leasesServer) List(ctx context.Context, _ *leases.ListRequest) (*leases.ListResponse, error) {
	answer := &leases.ListResponse{}
	for _, id := range s.leased {
		answer.Leases = append(answer.Leases, &leases.Lease{ID: id})
	}
	return answer, s.called(ctx, "list leases")
}

type versionServer struct {
	version.UnimplementedVersionServer
	*server
}

func (s versionServer) Version(context.Context, *emptypb.Empty) (*version.VersionResponse, error) {
	return &version.VersionResponse{Version: s.version}, nil
}

func TestEnd(t *testing.T) {
	missing, broken := status.Error(codes.NotFound, "no such task"), status.Error(codes.Unknown, "broken")
	const runc = "runc --root /run/containerd/runc/k8s.io delete --force c1"
	for name, row := range map[string]struct {
		fails   map[string]error
		runtime string
		calls   []string
		err     string
	}{
		"a task that runs": {nil, "io.containerd.runc.v2", []string{"get c1", "kill c1", "wait c1", "delete c1", runc},
			""},
		"a task that has ended": {map[string]error{"kill c1": broken}, "io.containerd.runc.v2",
			[]string{"get c1", "kill c1", "delete c1", runc}, ""},
		"one that ends meanwhile": {map[string]error{"wait c1": missing, "delete c1": missing}, "io.containerd.runc.v2",
			[]string{"get c1", "kill c1", "wait c1", "delete c1", runc}, ""},
		"no task": {map[string]error{"kill c1": missing, "delete c1": missing}, "io.containerd.runc.v2",
			[]string{"get c1", "kill c1", "delete c1", runc}, ""},
		"another OCI runtime": {nil, "io.containerd.kata.v2", []string{"get c1", "kill c1", "wait c1", "delete c1"},
			""},
		"a task that stays": {map[string]error{"delete c1": broken}, "io.containerd.runc.v2",
			[]string{"get c1", "kill c1", "wait c1", "delete c1", runc}, "deleting task c1"},
		"a task that does not end": {map[string]error{"wait c1": broken}, "io.containerd.runc.v2",
			[]string{"get c1", "kill c1", "wait c1", runc}, "waiting for the end of task c1"},
		"an OCI runtime that fails": {map[string]error{runc: broken}, "io.containerd.runc.v2",
			[]string{"get c1", "kill c1", "wait c1", "delete c1", runc}, "broken"},
		"no container": {map[string]error{"get c1": missing}, "", []string{"get c1"}, ""},
		"no containerd": {map[string]error{"get c1": status.Error(codes.Unimplemented, "unknown service")}, "",
			[]string{"get c1"}, ""},
		"a containerd that does not answer": {map[string]error{"get c1": broken}, "", []string{"get c1"},
			"asking for container c1"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &server{fails: row.fails, runtime: &containers.Container_Runtime{Name: row.runtime}}
			client := New(serve(t, s))
			client.run = func(_ context.Context, program string, args ...string) error {
				call := program + " " + strings.Join(args, " ")
				s.calls = append(s.calls, call)
				return s.fails[call]
			}
			err := client.End(t.Context(), "c1")
			if (err != nil) != (row.err != "") || err != nil && !strings.Contains(err.Error(), row.err) {
				t.Errorf("error %v, want %q", err, row.err)
			}
			if !slices.Equal(s.calls, row.calls) {
				t.Errorf("calls %q, want %q", s.calls, row.calls)
			}
		})
	}
}

func serve(t *testing.T, s *server) *grpc.ClientConn {
	listener := bufconn.Listen(1 << 16)
	g := grpc.NewServer()
	containers.RegisterContainersServer(g, containersServer{server: s})
	tasks.RegisterTasksServer(g, tasksServer{server: s})
	sandboxes.RegisterStoreServer(g, sandboxesServer{server: s})
	leases.RegisterLeasesServer(g, leasesServer{server: s})
	version.RegisterVersionServer(g, versionServer{server: s})
	go func() { _ = g.Serve(listener) }()
	t.Cleanup(g.Stop)
	conn, err := grpc.NewClient("passthrough:containerd", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return listener.DialContext(ctx)
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func TestDeletion(t *testing.T) {
	own, err := anypb.New(&options.Options{BinaryName: "/opt/runc", Root: "/run/own", SystemdCgroup: true})
	if err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		runtime string
		options *anypb.Any
		want    string
		wrong   bool
	}{
		"no options": {"io.containerd.runc.v2", nil,
			"runc --root /run/containerd/runc/k8s.io delete --force c1", false},
		"its own": {"io.containerd.runc.v2", own, "/opt/runc --root /run/own/k8s.io delete --force c1",
			false},
		"another runtime":    {"io.containerd.kata.v2", own, "", false},
		"no runtime":         {"", nil, "", false},
		"options of another": {"io.containerd.runc.v2", &anypb.Any{TypeUrl: "other"}, "", true},
	} {
		program, args, known, err := deletion(row.runtime, row.options, "c1")
		got := strings.TrimSpace(program + " " + strings.Join(args, " "))
		if got != row.want || known != (row.want != "") || (err != nil) != row.wrong {
			t.Errorf("%s: %q, known %v, error %v; want %q", name, got, known, err, row.want)
		}
	}
}
