// Package librarylog routes the log of the API machinery into the daemon's. An end that is normal is no error there: a
// stream whose connection was closed by the other half of the same stream, or by a client that went away.
package librarylog

import (
	"errors"
	"net"
	"syscall"

	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
)

// Route sends what the libraries log to log, for the rest of the process.
func Route(log *zap.Logger) {
	log = log.WithOptions(zap.WrapCore(func(c zapcore.Core) zapcore.Core { return normalEnds{c} }))
	klog.SetLoggerWithOptions(zapr.NewLogger(log).WithName("klog"), klog.ContextualLogger(true))
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
	if isNormalEnd(fields) {
		if entry.Level = zapcore.DebugLevel; !c.Enabled(entry.Level) {
			return nil
		}
	}
	return c.Core.Write(entry, fields)
}

func isNormalEnd(fields []zapcore.Field) bool {
	for _, field := range fields {
		err, ok := field.Interface.(error)
		if ok && (errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.EPIPE)) {
			return true
		}
	}
	return false
}
