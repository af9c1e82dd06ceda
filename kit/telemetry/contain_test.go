package telemetry

import (
	"context"
	"crypto/tls"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	introspectionv1 "keelson.dev/proto/keelson/introspection/v1"
)

// breaking is a daemon that panics at every question.
type breaking struct {
	introspectionv1.UnimplementedIntrospectionServiceServer
}

func (breaking) Explain(context.Context, *introspectionv1.ExplainRequest) (*introspectionv1.ExplainResponse, error) {
	panic("no such case")
}

// A question whose handler panics is answered, and the daemon answers the next.
func TestBrokenAnswer(t *testing.T) {
	s := serve(t, Options{Address: "127.0.0.1:0"})
	introspectionv1.RegisterIntrospectionServiceServer(s.GRPC, breaking{})
	conn, err := grpc.NewClient(s.Address(), grpc.WithTransportCredentials(credentials.NewTLS(
		&tls.Config{InsecureSkipVerify: true})))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	client := introspectionv1.NewIntrospectionServiceClient(conn)
	for range 2 {
		_, err = client.Explain(t.Context(), &introspectionv1.ExplainRequest{})
		if status.Code(err) != codes.Internal || !strings.Contains(err.Error(), "broke off: no such case") {
			t.Errorf("%v", err)
		}
	}
}
