package server

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"keelson.dev/kit/logging"
)

// ownProcess marks the process that runs this test alone: it replaces the process's logger, which sessions of other
// tests may still read.
const ownProcess = "KEELSON_OWN_PROCESS"

// A normal end is no error: sessions that ended, and clients that left in the middle of one or of the TLS
// handshake, in an orderly way or not.
func TestEndsAreNoErrors(t *testing.T) {
	if os.Getenv(ownProcess) == "" {
		again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestEndsAreNoErrors$")
		again.Env = append(os.Environ(), ownProcess+"=1")
		if out, err := again.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	core, lines := observer.New(zap.DebugLevel)
	logging.Capture(zap.New(core))
	n := newNodeWith(t, zap.New(core))
	n.state.Containers[0].LogPath = filepath.Join(n.logDir, "0.log")
	if err := os.WriteFile(n.state.Containers[0].LogPath, []byte(entry("stdout", "one")), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Run("ended", func(t *testing.T) {
		for _, path := range []string{"/exec/ns/web/app?output=1&command=sh", "/attach/ns/web/app?output=1"} {
			execute(t, n, path)
		}
		if got := forward(t, n, "ping"); got != "s1:ping" {
			t.Errorf("got %q", got)
		}
		if code, body, err := n.get("/containerLogs/ns/web/app"); code != 200 || body != "one\n" {
			t.Errorf("%d, %q, %v", code, body, err)
		}
	})
	for _, path := range []string{
		"", "/exec/ns/web/app?input=1&output=1&command=sh", "/attach/ns/web/app?input=1&output=1",
		"/portForward/ns/web?port=8080", "/containerLogs/ns/web/app?follow=true",
	} {
		for name, end := range map[string]func(*net.TCPConn, *tls.Conn) error{
			"tls close": func(_ *net.TCPConn, c *tls.Conn) error { return c.Close() },
			"close":     func(c *net.TCPConn, _ *tls.Conn) error { return c.Close() },
			"reset":     reset,
		} {
			t.Run(name+" "+path, func(t *testing.T) { abort(t, n, path, end) })
		}
	}
	awaitEnds(t, n)
	for _, line := range lines.All() {
		if line.Level >= zap.ErrorLevel {
			t.Errorf("an ordinary run logged the error %s %v", line.Message, line.ContextMap())
		}
	}
	if lines.FilterMessageSnippet("TLS handshake error").Len() == 0 {
		t.Error("the server's own log is not looked at")
	}
}

// reset closes without TCP's orderly end.
func reset(c *net.TCPConn, _ *tls.Conn) error {
	if err := c.SetLinger(0); err != nil {
		return err
	}
	return c.Close()
}

// abort opens a session on path and leaves in the middle of it; without a path, in the middle of the TLS handshake.
func abort(t *testing.T, n *node, path string, end func(*net.TCPConn, *tls.Conn) error) {
	t.Helper()
	raw, err := new(net.Dialer).DialContext(t.Context(), "tcp", n.address)
	if err != nil {
		t.Fatal(err)
	}
	tcp := raw.(*net.TCPConn)
	conn := tls.Client(tcp, &tls.Config{
		RootCAs: n.pool(), ServerName: "127.0.0.1",
		Certificates: []tls.Certificate{n.client("system:keelson:apiserver")},
	})
	if path != "" {
		request := "GET " + path + " HTTP/1.1\r\nHost: node\r\n"
		if !strings.Contains(path, "Logs") {
			request += "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" +
				"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: v4.channel.k8s.io\r\n"
		}
		if _, err := io.WriteString(conn, request+"\r\n"); err != nil {
			t.Fatal(err)
		}
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || response.StatusCode >= http.StatusBadRequest {
			t.Fatal(fmt.Sprint(response, err))
		}
	} else if _, err := tcp.Write([]byte{22, 3, 1}); err != nil {
		t.Fatal(err)
	}
	if err := end(tcp, conn); err != nil {
		t.Fatal(err)
	}
}

// awaitEnds returns when the runtime serves no session any more.
func awaitEnds(t *testing.T, n *node) {
	t.Helper()
	select {
	case <-n.sessions.none():
	case <-time.After(30 * time.Second):
		t.Fatal("a session outlived its client")
	}
}
