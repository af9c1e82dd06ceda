package probe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/nodeagent/internal/handlers"
)

// checker runs single diagnostics.
type checker struct {
	executor handlers.Executor
	client   *http.Client
	dialer   *net.Dialer
	version  string
}

// check runs the probe once, within its time-out, and returns the outcome with a message for people.
func (c *checker) check(ctx context.Context, target Target, probe *corev1.Probe) (Outcome, string) {
	ctx, cancel := context.WithTimeout(ctx, Timeout(probe))
	defer cancel()
	switch {
	case probe.Exec != nil:
		return c.exec(ctx, target, probe)
	case probe.HTTPGet != nil:
		return c.httpGet(ctx, target, probe.HTTPGet)
	case probe.TCPSocket != nil:
		return c.tcpSocket(ctx, target, probe.TCPSocket)
	case probe.GRPC != nil:
		return c.grpc(ctx, target, probe)
	}
	return Unknown, "probe names no diagnostic: set exec, httpGet, tcpSocket or grpc"
}

// exec succeeds with exit status 0. A command that takes too long fails; one that cannot be run has the outcome
// Unknown.
func (c *checker) exec(ctx context.Context, target Target, probe *corev1.Probe) (Outcome, string) {
	timeout := Timeout(probe)
	result, err := c.executor.ExecSync(ctx, target.ContainerID, probe.Exec.Command, timeout)
	switch {
	case err != nil && (errors.Is(err, context.DeadlineExceeded) || status.Code(err) == codes.DeadlineExceeded):
		return Failure, fmt.Sprintf("command timed out: %q timed out after %s", strings.Join(probe.Exec.Command, " "),
			timeout)
	case err != nil:
		return Unknown, err.Error()
	}
	if result.ExitCode != 0 {
		return Failure, result.Output()
	}
	return Success, result.Output()
}

// httpGet succeeds with a status code from 200 to 399. A redirect that is not followed is a Warning: it leads to
// another host, and the container reported nothing of itself.
func (c *checker) httpGet(ctx context.Context, target Target, get *corev1.HTTPGetAction) (Outcome, string) {
	request, err := handlers.Request(ctx, get, target.Container, target.IP, c.version)
	if err != nil {
		return Unknown, err.Error()
	}
	code, body, err := handlers.Do(c.client, request)
	switch {
	case err != nil:
		return Failure, err.Error()
	case code >= http.StatusOK && code < http.StatusMultipleChoices:
		return Success, ""
	case code >= http.StatusMultipleChoices && code < http.StatusBadRequest:
		return Warning, "Probe terminated redirects, Response body: " + body
	}
	return Failure, fmt.Sprintf("HTTP probe failed with statuscode: %d", code)
}

// tcpSocket succeeds when a connection can be opened, even if it is closed at once.
func (c *checker) tcpSocket(ctx context.Context, target Target, socket *corev1.TCPSocketAction) (Outcome, string) {
	port, err := handlers.Port(socket.Port, target.Container)
	if err != nil {
		return Unknown, err.Error()
	}
	connection, err := c.dialer.DialContext(ctx, "tcp", handlers.Address(socket.Host, target.IP, port))
	if err != nil {
		return Failure, err.Error()
	}
	connection.Close()
	return Success, ""
}

// grpc succeeds when the container's health service answers SERVING.
func (c *checker) grpc(ctx context.Context, target Target, probe *corev1.Probe) (Outcome, string) {
	address := handlers.Address("", target.IP, int(probe.GRPC.Port))
	connection, err := grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithUserAgent("kube-probe/"+c.version),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return c.dialer.DialContext(ctx, "tcp", address)
		}))
	if err != nil {
		return Unknown, err.Error()
	}
	defer connection.Close()
	service := ""
	if probe.GRPC.Service != nil {
		service = *probe.GRPC.Service
	}
	answer, err := grpc_health_v1.NewHealthClient(connection).Check(ctx,
		&grpc_health_v1.HealthCheckRequest{Service: service})
	if err != nil {
		return Failure, grpcMessage(err, address, Timeout(probe))
	}
	if answer.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
		return Failure, fmt.Sprintf("service unhealthy (responded with %q)", answer.GetStatus())
	}
	return Success, "service healthy"
}

func grpcMessage(err error, address string, timeout time.Duration) string {
	switch status.Code(err) {
	case codes.Unimplemented:
		return fmt.Sprintf("error: this server does not implement the grpc health protocol (grpc.health.v1.Health): %s",
			err)
	case codes.DeadlineExceeded:
		return fmt.Sprintf("timeout: health rpc did not complete within %v", timeout)
	case codes.Unavailable:
		return fmt.Sprintf("timeout: failed to connect service %q within %v: %s", address, timeout, err)
	}
	return fmt.Sprintf("error: health rpc probe failed: %s", err)
}
