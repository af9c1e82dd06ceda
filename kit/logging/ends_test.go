package logging

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"syscall"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	"k8s.io/klog/v2"
)

func TestRoute(t *testing.T) {
	restore(t)
	core, lines := observer.New(zapcore.DebugLevel)
	Capture(zap.New(core))
	for _, row := range []struct {
		err  error
		want zapcore.Level
	}{
		{&net.OpError{Op: "read", Err: net.ErrClosed}, zapcore.DebugLevel},
		{fmt.Errorf("copying: %w", &net.OpError{Op: "write", Err: os.NewSyscallError("write", syscall.EPIPE)}),
			zapcore.DebugLevel},
		{&net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}, zapcore.DebugLevel},
		{&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, zapcore.ErrorLevel},
		{fmt.Errorf("watching: %w", &url.Error{Op: "Get", URL: "https://a", Err: context.Canceled}),
			zapcore.DebugLevel},
		{errors.New("apiserver received an error that is not an metav1.Status: context canceled"),
			zapcore.DebugLevel},
		{&url.Error{Op: "Get", URL: "https://a", Err: context.DeadlineExceeded}, zapcore.ErrorLevel},
		{errors.New("websocket: close 1000 (normal)"), zapcore.DebugLevel},
		{errors.New("websocket: close 1001 (going away)"), zapcore.DebugLevel},
		{fmt.Errorf("copying: %w", errors.New("websocket: close 1006 (abnormal closure): unexpected EOF")),
			zapcore.DebugLevel},
		{errors.New("unable to upgrade websocket connection: websocket server finished before becoming ready"),
			zapcore.DebugLevel},
		{errors.New("websocket: close sent"), zapcore.DebugLevel},
		{errors.New("apiserver was unable to write a response: " + http.ErrHandlerTimeout.Error()), zapcore.DebugLevel},
		{errors.New("websocket: close 1011 (internal server error)"), zapcore.ErrorLevel},
		{errors.New("disk full"), zapcore.ErrorLevel},
		{nil, zapcore.ErrorLevel},
	} {
		klog.Background().Error(row.err, "stream")
		if got := lines.TakeAll(); len(got) != 1 || got[0].Level != row.want || got[0].Message != "stream" {
			t.Errorf("%v: %v, want one line at level %s", row.err, got, row.want)
		}
	}
	for _, row := range []struct {
		result any
		want   zapcore.Level
	}{{nil, zapcore.DebugLevel}, {"runtime error", zapcore.ErrorLevel}, {errors.New("panic"), zapcore.ErrorLevel}} {
		klog.Background().Error(nil, "Post-timeout activity", "path", "/api", "result", row.result)
		if got := lines.TakeAll(); len(got) != 1 || got[0].Level != row.want {
			t.Errorf("a handler with the result %v: %v, want level %s", row.result, got, row.want)
		}
	}
	quiet, lines := observer.New(zapcore.InfoLevel)
	Capture(zap.New(quiet))
	klog.Background().Error(net.ErrClosed, "stream")
	klog.Background().Info("news")
	if got := lines.TakeAll(); len(got) != 1 || got[0].Message != "news" {
		t.Errorf("at level info: %v", got)
	}
}

// TestLines covers every http.Server without an ErrorLog, and those that have ours.
func TestLines(t *testing.T) {
	restore(t)
	core, lines := observer.New(zapcore.DebugLevel)
	Capture(zap.New(core))
	const handshake = "http: TLS handshake error from 127.0.0.1:2: "
	for line, want := range map[string]zapcore.Level{
		handshake + "EOF": zapcore.DebugLevel,
		handshake + "read tcp 1->2: read: connection reset by peer":                                 zapcore.DebugLevel,
		handshake + "write tcp 1->2: write: broken pipe":                                            zapcore.DebugLevel,
		handshake + "read tcp 1->2: i/o timeout":                                                    zapcore.DebugLevel,
		handshake + "read tcp 1->2: use of closed network connection":                               zapcore.DebugLevel,
		handshake + "tls: client didn't provide a certificate":                                      zapcore.WarnLevel,
		"http: Accept error: accept tcp 127.0.0.1:1: accept4: too many open files; retrying in 5ms": zapcore.ErrorLevel,
		"http: panic serving 127.0.0.1:2: EOF":                                                      zapcore.ErrorLevel,
		"http: superfluous response.WriteHeader call from main.main (main.go:1)":                    zapcore.ErrorLevel,
		"reading the disk: EOF":                                                                     zapcore.ErrorLevel,
	} {
		for name, to := range map[string]*log.Logger{"captured": log.Default(), "of a server": ForHTTP(zap.New(core))} {
			to.Print(line)
			if got := lines.TakeAll(); len(got) != 1 || got[0].Level != want || got[0].Message != line {
				t.Errorf("%s: %v, want one line at level %s: %s", name, got, want, line)
			}
		}
	}
}

// restore undoes Capture at the end of the test.
func restore(t *testing.T) {
	out, flags, prefix := log.Writer(), log.Flags(), log.Prefix()
	t.Cleanup(func() {
		klog.ClearLogger()
		log.SetOutput(out)
		log.SetFlags(flags)
		log.SetPrefix(prefix)
	})
}
