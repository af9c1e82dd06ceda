package server

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

// health answers each check by its name. A request switches a check for good; until then the flags' times decide.
type health struct {
	mu       sync.Mutex
	start    time.Time
	options  options
	switched map[string]bool
}

func newHealth(start time.Time, o options) *health {
	return &health{start: start, options: o, switched: map[string]bool{}}
}

func (h *health) set(check string, healthy bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.switched[check] = healthy
}

func (h *health) healthy(check string, now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if healthy, ok := h.switched[check]; ok {
		return healthy
	}
	age := now.Sub(h.start)
	return age >= h.options.healthyAfter && (h.options.unhealthyAt == 0 || age < h.options.unhealthyAt)
}

// grpcHealth is the same health over gRPC: the service's name is the check's name, the empty one is "healthz". A
// service whose name begins with "unknown" is one that the server does not know.
type grpcHealth struct {
	grpc_health_v1.UnimplementedHealthServer
	health *health
}

// Check answers for one service.
func (g *grpcHealth) Check(_ context.Context,
	request *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	check := request.GetService()
	if check == "" {
		check = "healthz"
	}
	if len(check) >= 7 && check[:7] == "unknown" {
		return nil, status.Errorf(codes.NotFound, "unknown service %q", check)
	}
	serving := grpc_health_v1.HealthCheckResponse_NOT_SERVING
	if g.health.healthy(check, time.Now()) {
		serving = grpc_health_v1.HealthCheckResponse_SERVING
	}
	return &grpc_health_v1.HealthCheckResponse{Status: serving}, nil
}
