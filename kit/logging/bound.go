package logging

import (
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// A daemon or one of its libraries may log a line for each wrong request or object of a client: these lines must not
// fill a disk. Lines of level debug are not bounded: a user asked for them.
var (
	// ofLibraries is for the lines of libraries: 100 in a second over a long time, 2,000 one after the other.
	ofLibraries = rate{each: time.Second / 100, most: 2000}
	// ofAll is for the bytes of all lines: 100 KiB in a second, which are 8 GiB in a day, 16 MiB at once.
	ofAll = rate{each: time.Second / (100 << 10), most: 16 << 20}
)

const (
	// longestValue is how much is logged of one text. A line about an object holds texts of the user who made it.
	longestValue = 2 << 10
	// longestStack is how much is logged of a stack.
	longestStack = 32 << 10
	// otherValue is what a value that is no text counts.
	otherValue = 100
)

// rate is one for each so much time, of which the most may come at once.
type rate struct {
	each time.Duration
	most int
}

// bounded leaves lines out where there are too many, and says how many they were.
type bounded struct {
	zapcore.Core
	left *allowance
	// cost is what a line takes of it.
	cost func(zapcore.Entry, []zapcore.Field) int
}

// byLine bounds the number of lines.
func byLine(c zapcore.Core) zapcore.Core {
	return bounded{c, &allowance{rate: ofLibraries}, func(zapcore.Entry, []zapcore.Field) int { return 1 }}
}

// byLength bounds the bytes of lines, and those of each text in them.
func byLength(c zapcore.Core) zapcore.Core {
	return bounded{shortened{c}, &allowance{rate: ofAll}, length}
}

// With implements zapcore.Core.
func (b bounded) With(fields []zapcore.Field) zapcore.Core {
	return bounded{b.Core.With(fields), b.left, b.cost}
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
	if entry.Level < zapcore.InfoLevel {
		return b.Core.Write(entry, fields)
	}
	allowed, before := b.left.take(entry.Time, b.cost(entry, fields))
	if before > 0 {
		told := zapcore.Entry{Level: zapcore.WarnLevel, Time: entry.Time, LoggerName: entry.LoggerName,
			Message: "Lines were left out: there were too many"}
		if err := b.Core.Write(told, []zapcore.Field{zap.Int("lines", before)}); err != nil {
			return err
		}
	}
	if !allowed {
		return nil
	}
	return b.Core.Write(entry, fields)
}

// allowance is how much there may still be.
type allowance struct {
	rate

	mu sync.Mutex // guards what follows
	// full is when it is filled up again if nothing is taken.
	full time.Time
	// omitted are the lines that were left out since one was not.
	omitted int
}

// take reports whether a line of that cost may be logged, and returns how many lines were left out before it.
func (a *allowance) take(now time.Time, cost int) (allowed bool, before int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.full.Before(now) {
		a.full = now
	}
	until := a.full.Add(time.Duration(cost) * a.each)
	if until.After(now.Add(time.Duration(a.most) * a.each)) {
		a.omitted++
		return false, 0
	}
	a.full = until
	before, a.omitted = a.omitted, 0
	return true, before
}

// shortened cuts long texts.
type shortened struct{ zapcore.Core }

// With implements zapcore.Core.
func (s shortened) With(fields []zapcore.Field) zapcore.Core {
	return shortened{s.Core.With(shorten(fields))}
}

// Write implements zapcore.Core.
func (s shortened) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	entry.Message, entry.Stack = cut(entry.Message, longestValue), cut(entry.Stack, longestStack)
	return s.Core.Write(entry, shorten(fields))
}

// shorten returns the fields with their texts cut. It changes none of them.
func shorten(fields []zapcore.Field) []zapcore.Field {
	var out []zapcore.Field
	for i, f := range fields {
		text, is := textOf(f)
		most := longestValue
		if f.Key == stackKey {
			most = longestStack
		}
		if !is || len(text) <= most {
			continue
		}
		if out == nil {
			out = append(out, fields...)
		}
		out[i] = zap.String(f.Key, cut(text, most))
	}
	if out == nil {
		return fields
	}
	return out
}

// textOf is the text of a field; false if it is none.
func textOf(f zapcore.Field) (text string, is bool) {
	switch of := f.Interface.(type) {
	case error:
		return of.Error(), true
	case fmt.Stringer:
		return of.String(), true
	case []byte:
		return string(of), true
	}
	return f.String, f.Type == zapcore.StringType
}

func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return fmt.Sprintf("%s... (%d bytes)", text[:most], len(text))
}

// length is about how many bytes a line has once its texts are cut.
func length(entry zapcore.Entry, fields []zapcore.Field) int {
	n := min(len(entry.Message), longestValue) + min(len(entry.Stack), longestStack) + otherValue
	for _, f := range fields {
		n += len(f.Key) + otherValue
		if text, is := textOf(f); is {
			n += min(len(text), longestValue)
		}
	}
	return n
}
