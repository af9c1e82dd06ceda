package librarylog

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	"k8s.io/klog/v2"
)

func TestRoute(t *testing.T) {
	core, lines := observer.New(zapcore.DebugLevel)
	Route(zap.New(core))
	defer klog.ClearLogger()
	for _, row := range []struct {
		err  error
		want zapcore.Level
	}{
		{&net.OpError{Op: "read", Err: net.ErrClosed}, zapcore.DebugLevel},
		{fmt.Errorf("copying: %w", &net.OpError{Op: "write", Err: os.NewSyscallError("write", syscall.EPIPE)}), zapcore.DebugLevel},
		{&net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}, zapcore.ErrorLevel},
		{errors.New("disk full"), zapcore.ErrorLevel},
		{nil, zapcore.ErrorLevel},
	} {
		klog.Background().Error(row.err, "stream")
		if got := lines.TakeAll(); len(got) != 1 || got[0].Level != row.want || got[0].Message != "stream" {
			t.Errorf("%v: %v, want one line at level %s", row.err, got, row.want)
		}
	}
	quiet, lines := observer.New(zapcore.InfoLevel)
	Route(zap.New(quiet))
	klog.Background().Error(net.ErrClosed, "stream")
	klog.Background().Info("news")
	if got := lines.TakeAll(); len(got) != 1 || got[0].Message != "news" {
		t.Errorf("at level info: %v", got)
	}
}
