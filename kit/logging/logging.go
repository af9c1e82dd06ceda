// Package logging sets up the one logger of a daemon: zap, with the libraries' logs routed into it.
package logging

import (
	"fmt"
	"io"
	"strings"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Options choose what is logged and how.
type Options struct {
	// Level is one of debug, info, warn, error.
	Level string
	// Format is json or console.
	Format string
}

// Validate says in one sentence what is wrong with the options.
func (o Options) Validate() error {
	if _, err := o.level(); err != nil {
		return err
	}
	if o.Format != "json" && o.Format != "console" {
		return fmt.Errorf("--log-format: %q is not known, allowed are json, console", o.Format)
	}
	return nil
}

// New returns a logger that writes whole lines to out, cuts long texts, and leaves lines out where there are too many.
func New(o Options, out io.Writer) (*zap.Logger, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	level, err := o.level()
	if err != nil {
		return nil, err
	}
	core := zapcore.NewCore(encoder(o.Format), zapcore.Lock(zapcore.AddSync(out)), level)
	return zap.New(byLength(core), zap.ErrorOutput(zapcore.Lock(zapcore.AddSync(out)))), nil
}

func (o Options) level() (zapcore.Level, error) {
	switch o.Level {
	case "debug", "info", "warn", "error":
		return zapcore.ParseLevel(o.Level)
	default:
		return 0, fmt.Errorf("--log-level: %q is not known, allowed are %s", o.Level,
			strings.Join([]string{"debug", "info", "warn", "error"}, ", "))
	}
}

// stackKey is the field of stacks.
const stackKey = "stack"

func encoder(format string) zapcore.Encoder {
	keys := zapcore.EncoderConfig{
		TimeKey: "time", LevelKey: "level", NameKey: "logger", MessageKey: "message", StacktraceKey: stackKey,
		EncodeTime: zapcore.RFC3339NanoTimeEncoder, EncodeLevel: zapcore.LowercaseLevelEncoder,
		EncodeDuration: zapcore.StringDurationEncoder, EncodeName: zapcore.FullNameEncoder,
	}
	if format == "json" {
		return zapcore.NewJSONEncoder(keys)
	}
	return zapcore.NewConsoleEncoder(keys)
}
