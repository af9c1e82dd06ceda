package logging

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// TestCaptureStderr: what a library writes past all logs is a line of the log, also what never ends.
func TestCaptureStderr(t *testing.T) {
	was := os.Stderr
	t.Cleanup(func() { _ = os.Stderr.Close(); os.Stderr = was })
	core, lines := observer.New(zapcore.DebugLevel)
	seen := make(chan struct{}, 1)
	if err := CaptureStderr(zap.New(telling{core, seen})); err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(os.Stderr, "http: TLS handshake error from 127.0.0.1:2: EOF\nsomething ", "is odd\n",
		strings.Repeat("x", longestLine), "y\n")
	want := []observer.LoggedEntry{
		{Entry: zapcore.Entry{Level: zapcore.DebugLevel, Message: "http: TLS handshake error from 127.0.0.1:2: EOF"}},
		{Entry: zapcore.Entry{Level: zapcore.ErrorLevel, Message: "something is odd"}},
		{Entry: zapcore.Entry{Level: zapcore.ErrorLevel, Message: strings.Repeat("x", longestLine)}},
		{Entry: zapcore.Entry{Level: zapcore.ErrorLevel, Message: "y"}},
	}
	for range want {
		<-seen
	}
	for i, got := range lines.TakeAll() {
		if got.Level != want[i].Level || got.Message != want[i].Message || got.LoggerName != "stderr" {
			t.Errorf("line %d: %.100v, want %.100v", i, got, want[i])
		}
	}
}

// telling says of each line that it was written.
type telling struct {
	zapcore.Core
	seen chan<- struct{}
}

// Write implements zapcore.Core.
func (t telling) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	defer func() { t.seen <- struct{}{} }()
	return t.Core.Write(entry, fields)
}
