package backup

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"keelson.dev/services/apiserver/internal/storage/storedir"
)

// withoutExit runs what the library does in a goroutine of its own: where the library would end the process, or panics,
// in this goroutine or in one that it starts, that is the error.
func withoutExit(ctx context.Context, do func(*zap.Logger) error) error {
	ended := make(exits, 1)
	log := zap.New(zapcore.NewNopCore(), zap.WithFatalHook(ended), zap.WithPanicHook(ended))
	go ended.run(func() error { return do(log) })
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// exits take the place of the exits and panics in the library's log.
type exits chan error

// run tells how it went, a panic and a page beyond the end of a file included.
func (e exits) run(do func() error) {
	debug.SetPanicOnFault(true)
	defer func() {
		if failure := recover(); failure != nil {
			e.tell(errors.New(storedir.OneLine(fmt.Sprint(failure))))
		}
	}()
	e.tell(do())
}

// OnWrite implements zapcore.CheckWriteHook.
func (e exits) OnWrite(entry *zapcore.CheckedEntry, fields []zapcore.Field) {
	e.tell(errors.New(storedir.Describe(entry.Message, fields)))
	runtime.Goexit()
}

// tell keeps the first: what comes later follows from it.
func (e exits) tell(err error) {
	select {
	case e <- err:
	default:
	}
}
