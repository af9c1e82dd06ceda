package logging

import (
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

const (
	// perSecond is how many lines of libraries are logged in a second over a long time. What a client does wrong a
	// library may tell in a line for each request; this is 2 GB in a day at most.
	perSecond = 100
	// atOnce is how many come one after the other before any is left out.
	atOnce = 2000
)

// bounded leaves lines out where there are too many, and says how many they were.
type bounded struct {
	zapcore.Core
	lines *allowance
}

// With implements zapcore.Core.
func (b bounded) With(fields []zapcore.Field) zapcore.Core {
	return bounded{b.Core.With(fields), b.lines}
}

// Check implements zapcore.Core.
func (b bounded) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if !b.Enabled(entry.Level) {
		return checked
	}
	return checked.AddCore(entry, b)
}

// Write implements zapcore.Core.
func (b bounded) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	allowed, before := b.lines.take(entry.Time)
	if before > 0 {
		told := zapcore.Entry{Level: zapcore.WarnLevel, Time: entry.Time, LoggerName: entry.LoggerName,
			Message: "Lines of libraries were left out: there were too many"}
		if err := b.Core.Write(told, []zapcore.Field{zap.Int("lines", before)}); err != nil {
			return err
		}
	}
	if !allowed {
		return nil
	}
	return b.Core.Write(entry, fields)
}

// allowance is how many lines there may still be: it fills up by perSecond, to atOnce.
type allowance struct {
	mu sync.Mutex // guards what follows
	// full is when it is filled up again if nothing is taken.
	full time.Time
	// omitted are the lines that were left out since one was not.
	omitted int
}

// take says whether a line may be logged, and of how many that were left out before it must be told.
func (a *allowance) take(now time.Time) (allowed bool, before int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.full.Before(now) {
		a.full = now
	}
	const each = time.Second / perSecond
	if a.full.Add(each).After(now.Add(atOnce * each)) {
		a.omitted++
		return false, 0
	}
	a.full = a.full.Add(each)
	before, a.omitted = a.omitted, 0
	return true, before
}
