// Package pluginsocket speaks gRPC with the plugins of a node over unix sockets. A plugin may be hostile: no link
// is followed, and its answers are bounded.
package pluginsocket

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"

	"keelson.dev/services/nodeagent/internal/plainfile"
)

// The maximum sizes of a plugin's answer, and of its headers, which contain the text of errors.
const (
	maxMessageBytes = 1 << 20
	maxHeaderBytes  = 64 << 10
)

// reconnect is the back-off for connecting to a plugin that was gone.
var reconnect = backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 2, MaxDelay: 2 * time.Second}

// Connect prepares a connection to a socket in the root. It connects at the first use, and again when the
// connection breaks.
func Connect(root plainfile.Root, path string) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+path,
		grpc.WithTransportCredentials(insecure.NewCredentials()), // a unix socket of root: its file mode protects it
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return root.DialSocket(ctx, path)
		}),
		grpc.WithAuthority("localhost"),
		grpc.WithMaxHeaderListSize(maxHeaderBytes),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: reconnect, MinConnectTimeout: time.Second}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessageBytes)),
	)
}

// Serve makes a server listen at a socket in a folder that only the agent writes, until ctx ends.
func Serve(ctx context.Context, dir, name string, server *grpc.Server) error {
	listener, err := Listen(dir, name)
	if err != nil {
		return fmt.Errorf("listening at %s: %w", filepath.Join(dir, name), err)
	}
	stop := context.AfterFunc(ctx, server.Stop)
	defer stop()
	if err := server.Serve(listener); err != nil && ctx.Err() == nil {
		return fmt.Errorf("serving at %s: %w", filepath.Join(dir, name), err)
	}
	return nil
}

// Listen creates a socket in a folder that only the agent writes. Its path may be longer than a socket address.
func Listen(dir, name string) (net.Listener, error) {
	folder, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	address := fmt.Sprintf("/proc/self/fd/%d/%s", folder.Fd(), name)
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: address, Net: "unix"})
	if err != nil {
		return nil, err
	}
	listener.SetUnlinkOnClose(false) // the descriptor in its address is closed
	return listener, nil
}

// longestText bounds a text from a plugin, in bytes: it is passed on to events and logs.
const longestText = 512

// Clip makes a plugin's text one line of bounded length.
func Clip(text string) string {
	if len(text) > longestText {
		text = text[:longestText] + "..."
	}
	return strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " ")
}
