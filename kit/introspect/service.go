package introspect

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	introspectionv1 "keelson.dev/proto/keelson/introspection/v1"
)

// Register serves the state and grpc health on the server.
func (s *State) Register(server *grpc.Server) {
	introspectionv1.RegisterIntrospectionServiceServer(server, &service{state: s})
	healthv1.RegisterHealthServer(server, health.NewServer())
}

type service struct {
	introspectionv1.UnimplementedIntrospectionServiceServer
	state *State
}

// GetStatus implements IntrospectionServiceServer.
func (s *service) GetStatus(context.Context, *introspectionv1.GetStatusRequest) (*introspectionv1.GetStatusResponse,
	error) {
	return s.state.status(), nil
}

// Explain implements IntrospectionServiceServer.
func (s *service) Explain(ctx context.Context, r *introspectionv1.ExplainRequest) (*introspectionv1.ExplainResponse,
	error) {
	object := r.GetObject()
	if object.GetKind() == "" || object.GetName() == "" {
		return nil, status.Error(codes.InvalidArgument, "object.kind and object.name are required")
	}
	explain, kinds := s.state.explainer(object.GetKind())
	switch {
	case explain == nil && len(kinds) == 0:
		return nil, status.Errorf(codes.NotFound, "%s explains no objects", s.state.daemon)
	case explain == nil:
		return nil, status.Errorf(codes.NotFound, "%s explains no %s, only: %s", s.state.daemon, object.GetKind(),
			strings.Join(kinds, ", "))
	}
	explanation, known := explain(ctx, object.GetNamespace(), object.GetName())
	if !known {
		return nil, status.Errorf(codes.NotFound, "%s knows nothing of %s %s/%s", s.state.daemon, object.GetKind(),
			object.GetNamespace(), object.GetName())
	}
	response := &introspectionv1.ExplainResponse{Summary: explanation.Summary}
	for _, fact := range explanation.Facts {
		said := &introspectionv1.Fact{Reason: fact.Reason, Message: fact.Message}
		if !fact.Time.IsZero() {
			said.Time = timestamppb.New(fact.Time)
		}
		response.Facts = append(response.Facts, said)
	}
	return response, nil
}

// status takes the picture; the queues are asked without the lock, since they take locks of their own.
func (s *State) status() *introspectionv1.GetStatusResponse {
	response := &introspectionv1.GetStatusResponse{
		Daemon: s.daemon, Version: s.version, StartTime: timestamppb.New(s.started), ProcessId: processID(),
	}
	queues := map[string]Depth{}
	s.mu.Lock()
	for _, role := range s.roles {
		response.Roles = append(response.Roles, proto.CloneOf(role))
	}
	for source, f := range s.errors {
		response.LastErrors = append(response.LastErrors, &introspectionv1.LastError{
			Source: source, Message: f.message, Time: timestamppb.New(f.at), Count: f.count,
		})
	}
	for name, depth := range s.queues {
		queues[name] = depth
	}
	s.mu.Unlock()

	for name, depth := range queues {
		entries, oldest := depth()
		queue := &introspectionv1.Queue{Name: name, Depth: int64(entries)}
		if oldest > 0 {
			queue.Oldest = durationpb.New(oldest)
		}
		response.Queues = append(response.Queues, queue)
	}
	slices.SortFunc(response.Roles, func(a, b *introspectionv1.Role) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(response.Queues, func(a, b *introspectionv1.Queue) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(response.LastErrors, func(a, b *introspectionv1.LastError) int {
		return cmp.Or(b.Time.AsTime().Compare(a.Time.AsTime()), cmp.Compare(a.Source, b.Source))
	})
	return response
}
