// Package pluginsocket speaks gRPC with the plugins of a node over their unix sockets, which may be hostile: no link is
// followed, and what a plugin answers is bounded.
package pluginsocket

import (
	"context"
	"net"
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

// longestText is how much of a text from a plugin is passed on, in bytes: it ends up in events and logs.
const longestText = 512

// Clip makes one line of bounded length of a plugin's text.
func Clip(text string) string {
	if len(text) > longestText {
		text = text[:longestText] + "..."
	}
	return strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " ")
}
