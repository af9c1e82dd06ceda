package telemetry

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"keelson.dev/kit/contained"
)

// gRPC answers each call in a goroutine of its own, which nothing recovers: what breaks off there would end the daemon.
var (
	containUnary = grpc.UnaryInterceptor(func(ctx context.Context, request any, info *grpc.UnaryServerInfo,
		handler grpc.UnaryHandler) (answer any, err error) {
		broken := contained.Do(info.FullMethod, func() { answer, err = handler(ctx, request) })
		return answer, answerOf(broken, err)
	})
	containStream = grpc.StreamInterceptor(func(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo,
		handler grpc.StreamHandler) (err error) {
		broken := contained.Do(info.FullMethod, func() { err = handler(server, stream) })
		return answerOf(broken, err)
	})
)

// answerOf is the error of a call: that it broke off, or its own.
func answerOf(broken, err error) error {
	if broken != nil {
		return status.Error(codes.Internal, broken.Error())
	}
	return err
}
