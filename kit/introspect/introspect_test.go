package introspect

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	introspectionv1 "keelson.dev/proto/keelson/introspection/v1"
)

func connect(t *testing.T, s *State) *grpc.ClientConn {
	t.Helper()
	server, listener := grpc.NewServer(), bufconn.Listen(1<<16)
	s.Register(server)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	conn, err := grpc.NewClient("passthrough:test", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn,
			error) {
			return listener.DialContext(ctx)
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func TestGetStatusShowsRolesQueuesAndErrors(t *testing.T) {
	s := NewState("scheduler", "v1")
	s.AddQueue("b", func() (int, time.Duration) { return 3, time.Second })
	s.AddQueue("a", func() (int, time.Duration) { return 0, 0 })
	s.Failed("bind", errors.New("first"))
	s.Failed("bind", errors.New("second"))
	s.Campaigning("scheduler.x")
	s.Leading("scheduler.x", "me")
	s.Campaigning("scheduler.y")
	s.Elected("scheduler.y", "other")
	got, err := introspectionv1.NewIntrospectionServiceClient(connect(t, s)).GetStatus(t.Context(),
		&introspectionv1.GetStatusRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if got.Daemon != "scheduler" || got.Version != "v1" || got.ProcessId == 0 {
		t.Errorf("identity: %v", got)
	}
	if len(got.Queues) != 2 || got.Queues[0].Name != "a" || got.Queues[1].Depth != 3 ||
		got.Queues[1].Oldest.AsDuration() != time.Second {
		t.Errorf("queues: %v", got.Queues)
	}
	if len(got.LastErrors) != 1 || got.LastErrors[0].Message != "second" || got.LastErrors[0].Count != 2 {
		t.Errorf("errors: %v", got.LastErrors)
	}
	if len(got.Roles) != 2 || !got.Roles[0].Leading || got.Roles[0].Since == nil || got.Roles[1].Leading ||
		got.Roles[1].Holder != "other" {
		t.Errorf("roles: %v", got.Roles)
	}
	s.Lost("scheduler.x")
	if role := s.status().Roles[0]; role.Leading || role.Since != nil {
		t.Errorf("after the loss: %v", role)
	}
}

func TestExplainAnswersOrSaysWhatIsMissing(t *testing.T) {
	s := NewState("scheduler", "v1")
	s.AddExplainer("Pod", func(_ context.Context, namespace, name string) (Explanation, bool) {
		return Explanation{Summary: namespace + "/" + name + " waits", Facts: []Fact{
				{Time: time.Unix(7, 0), Reason: "Unschedulable", Message: "0/1 nodes"},
				{Reason: "Node", Message: "n"}}},
			name == "web"
	})
	client := introspectionv1.NewIntrospectionServiceClient(connect(t, s))
	explain := func(kind, name string) (*introspectionv1.ExplainResponse, codes.Code) {
		got, err := client.Explain(t.Context(), &introspectionv1.ExplainRequest{
			Object: &introspectionv1.ObjectReference{Kind: kind, Namespace: "default", Name: name},
		})
		return got, status.Code(err)
	}
	if got, code := explain("pod", "web"); code != codes.OK || got.Summary != "default/web waits" ||
		got.Facts[0].Reason != "Unschedulable" {
		t.Errorf("%v %v", code, got)
	} else if got.Facts[0].Time.GetSeconds() != 7 || got.Facts[1].Time != nil {
		t.Errorf("the facts have times %v and %v, want one and none", got.Facts[0].Time, got.Facts[1].Time)
	}
	for _, test := range []struct {
		kind, name string
		want       codes.Code
	}{{"Pod", "", codes.InvalidArgument}, {"Node", "web", codes.NotFound}, {"Pod", "other", codes.NotFound}} {
		if _, code := explain(test.kind, test.name); code != test.want {
			t.Errorf("%s %q: %v, want %v", test.kind, test.name, code, test.want)
		}
	}
}

// A daemon that explains nothing says so.
func TestExplainOfADaemonWithoutExplanations(t *testing.T) {
	_, err := introspectionv1.NewIntrospectionServiceClient(connect(t, NewState("podgc", "v1"))).Explain(t.Context(),
		&introspectionv1.ExplainRequest{Object: &introspectionv1.ObjectReference{Kind: "Pod", Name: "web"}})
	if got := status.Convert(err).Message(); got != "podgc explains no objects" {
		t.Errorf("got %q", got)
	}
}

func TestHealthIsServed(t *testing.T) {
	got, err := healthv1.NewHealthClient(connect(t, NewState("x", "v"))).Check(t.Context(),
		&healthv1.HealthCheckRequest{})
	if err != nil || got.Status != healthv1.HealthCheckResponse_SERVING {
		t.Errorf("%v %v", got, err)
	}
}
