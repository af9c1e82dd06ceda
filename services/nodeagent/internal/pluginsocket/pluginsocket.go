// Package pluginsocket speaks gRPC with the plugins of a node over unix sockets. Theirs may be hostile: no link is
// followed, and what a plugin answers is bounded.
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

// What a plugin's answer may be at most, and its headers, which carry the text of errors.
const (
	maxMessageBytes = 1 << 20
	maxHeaderBytes  = 64 << 10
)

// reconnect says how soon a plugin that was gone is found again.
var reconnect = backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 2, MaxDelay: 2 * time.Second}

// Connect prepares a connection to a socket below the root. It is made when it is first used, and anew when it breaks.
func Connect(root plainfile.Root, path string) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+path,
		grpc.WithTransportCredentials(insecure.NewCredentials()), // a unix socket of root: its file mode is the guard
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return root.DialSocket(ctx, path)
		}),
		grpc.WithAuthority("localhost"),
		grpc.WithMaxHeaderListSize(maxHeaderBytes),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: reconnect, MinConnectTimeout: time.Second}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessageBytes)),
	)
}

// Serve has a server answer at a socket in a folder of which the agent makes all, until ctx ends.
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

// Listen makes a socket in a folder of which the agent makes all. Its path may be longer than an address can be.
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

// longestText is how much of a text from a plugin is passed on, in bytes: it ends up in events and logs.
const longestText = 512

// Clip makes one line of bounded length of a plugin's text.
func Clip(text string) string {
	if len(text) > longestText {
		text = text[:longestText] + "..."
	}
	return strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " ")
}
