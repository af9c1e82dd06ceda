package logging

import (
	"context"
	"errors"
	"log"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"

	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
)

// Capture routes klog and the standard library's log into the logger for the rest of the process. Verbose levels (V(1)
// and above) count as debug, and so does an error that only says that a connection ended: closed by the other half of
// the same stream, by a client that went away, or by the caller itself, which no longer needs the answer. Some of the
// lines that come too fast are left out.
func Capture(to *zap.Logger) {
	to = boundLines(to)
	lowered := to.WithOptions(zap.WrapCore(func(c zapcore.Core) zapcore.Core { return normalEnds{c} }))
	klog.SetLoggerWithOptions(zapr.NewLogger(lowered.Named("klog")), klog.ContextualLogger(true))
	log.SetFlags(0)
	log.SetPrefix("")
	log.SetOutput(lines{to.Named("log")})
}

// ForHTTP is the ErrorLog of an http.Server: what a client is to blame for is no error of the daemon's.
func ForHTTP(to *zap.Logger) *log.Logger { return log.New(lines{boundLines(to)}, "", 0) }

// boundLines is a logger for what others make a library say.
func boundLines(to *zap.Logger) *zap.Logger {
	return to.WithOptions(zap.WrapCore(byLine))
}

// normalEnds lowers errors about normal ends to the level debug.
type normalEnds struct{ zapcore.Core }

// With implements zapcore.Core.
func (c normalEnds) With(fields []zapcore.Field) zapcore.Core { return normalEnds{c.Core.With(fields)} }

// Check implements zapcore.Core.
func (c normalEnds) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if entry.Level != zapcore.ErrorLevel {
		return c.Core.Check(entry, checked)
	}
	if !c.Enabled(entry.Level) {
		return checked
	}
	return checked.AddCore(entry, c)
}

// Write implements zapcore.Core.
func (c normalEnds) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	if isNormalEnd(entry.Message, fields) {
		if entry.Level = zapcore.DebugLevel; !c.Enabled(entry.Level) {
			return nil
		}
	}
	return c.Core.Write(entry, fields)
}

// worded are the ends that libraries report by their text alone: the other side of a WebSocket has ended the session,
// said that it leaves, left without a word, or did so before the session began; and a request's handler still wrote
// when its client had left or its time was over, which the client and the metrics report.
var worded = []string{"websocket: close 1000 ", "websocket: close 1001 ", "websocket: close 1006 ",
	"websocket: close sent", "websocket server finished before becoming ready", http.ErrHandlerTimeout.Error()}

// afterRequest is what the API machinery logs of a handler that ended after its request had; its panic, if there was
// one, is the field result.
const afterRequest = "Post-timeout activity"

func isNormalEnd(message string, fields []zapcore.Field) bool {
	for _, field := range fields {
		if message == afterRequest && field.Key == "result" {
			return field.Type == zapcore.ReflectType && field.Interface == nil
		}
		if err, ok := field.Interface.(error); ok && tellsOfEnd(err) {
			return true
		}
	}
	return false
}

func tellsOfEnd(err error) bool {
	for _, end := range []error{context.Canceled, net.ErrClosed, syscall.EPIPE, syscall.ECONNRESET} {
		if errors.Is(err, end) {
			return true
		}
	}
	text := err.Error()
	if strings.HasSuffix(text, ": "+context.Canceled.Error()) { // wrapped by its words
		return true
	}
	return slices.ContainsFunc(worded, func(end string) bool { return strings.Contains(text, end) })
}

// lines logs each line of the standard library's log, which knows no levels and no errors but their text.
type lines struct{ to *zap.Logger }

// Write implements io.Writer.
func (l lines) Write(text []byte) (int, error) {
	line := strings.TrimSpace(string(text))
	l.to.Log(levelOf(line), line)
	return len(text), nil
}

// handshake begins what net/http says of a handshake that failed.
const handshake = "http: TLS handshake error"

// closings are the ends of connections, as the standard library words them.
var closings = []string{": EOF", ": connection reset by peer", ": broken pipe", ": use of closed network connection",
	": i/o timeout"}

// levelOf is the level of a line of the standard library's log. Nearly all of them are net/http's.
func levelOf(line string) zapcore.Level {
	if !strings.HasPrefix(line, handshake) {
		return zapcore.ErrorLevel
	}
	for _, closing := range closings {
		if strings.HasSuffix(line, closing) {
			return zapcore.DebugLevel
		}
	}
	return zapcore.WarnLevel // either side's certificate may be at fault
}
